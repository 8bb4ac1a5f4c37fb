// SPDX-License-Identifier: Apache-2.0
#include "launch/host_list.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/text.h"

namespace welkin::launch {
namespace {

constexpr size_t kMostHosts = 1'000'000;
constexpr int64_t kMostBrackets = 16;  // of a part: each is one more level of calls

[[noreturn]] void refuse(std::string_view text, std::string_view variable) {
  throw ConfigError("launch", cat("the list cannot be read: ", variable, "=", text),
                    "It should be as Slurm writes it, for instance nid[001-004,007] or 4(x2),3");
}

int64_t number_of(std::string_view digits, std::string_view text, std::string_view variable) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() || value < 0) refuse(text, variable);
  return value;
}

// Splits at commas outside brackets.
std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']') --depth;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    if (i > begin) parts.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

// "001-004" -> 001 002 003 004, keeping the zeros.
std::vector<std::string> expand_range(std::string_view range, std::string_view list, std::string_view variable) {
  const size_t dash = range.find('-');
  const std::string_view first = range.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
  const int64_t from = number_of(first, list, variable);
  const int64_t to = number_of(last, list, variable);
  if (to < from || static_cast<size_t>(to - from) >= kMostHosts) refuse(list, variable);
  std::vector<std::string> numbers;
  for (int64_t i = from; i <= to; ++i) {
    std::string digits = std::to_string(i);
    if (digits.size() < first.size()) digits.insert(0, first.size() - digits.size(), '0');
    numbers.push_back(std::move(digits));
  }
  return numbers;
}

// Expands every bracket in turn: "r[1-2]n[1-2]" has four hosts.
std::vector<std::string> expand_part(std::string_view part, std::string_view list, std::string_view variable) {
  const size_t open = part.find('[');
  if (open == std::string_view::npos) {
    if (part.find(']') != std::string_view::npos) refuse(list, variable);
    return {std::string(part)};
  }
  const size_t close = part.find(']');
  if (close == std::string_view::npos || close < open) refuse(list, variable);
  const auto tails = expand_part(part.substr(close + 1), list, variable);
  std::vector<std::string> hosts;
  for (const std::string_view range : parts_of(part.substr(open + 1, close - open - 1))) {
    const auto numbers = expand_range(range, list, variable);
    if (numbers.size() * tails.size() > kMostHosts - hosts.size()) refuse(list, variable);
    for (const std::string& number : numbers) {
      for (const std::string& tail : tails) hosts.push_back(std::string(part.substr(0, open)).append(number).append(tail));
    }
  }
  return hosts;
}

}  // namespace

std::vector<std::string> expand_host_list(std::string_view list, std::string_view variable) {
  std::vector<std::string> hosts;
  for (const std::string_view part : parts_of(list)) {
    if (std::ranges::count(part, '[') > kMostBrackets) refuse(list, variable);
    for (std::string& host : expand_part(part, list, variable)) hosts.push_back(std::move(host));
    if (hosts.size() > kMostHosts) refuse(list, variable);
  }
  if (hosts.empty()) refuse(list, variable);
  return hosts;
}

std::vector<int64_t> expand_task_counts(std::string_view counts, std::string_view variable) {
  std::vector<int64_t> tasks;
  for (const std::string_view part : parts_of(counts)) {
    const size_t times = part.find("(x");
    const int64_t number = number_of(part.substr(0, times), counts, variable);
    int64_t repeats = 1;
    if (times != std::string_view::npos) {
      if (!part.ends_with(")")) refuse(counts, variable);
      repeats = number_of(part.substr(times + 2, part.size() - times - 3), counts, variable);
    }
    if (repeats < 1 || static_cast<size_t>(repeats) > kMostHosts) refuse(counts, variable);
    tasks.insert(tasks.end(), static_cast<size_t>(repeats), number);
  }
  if (tasks.empty()) refuse(counts, variable);
  return tasks;
}

}  // namespace welkin::launch
