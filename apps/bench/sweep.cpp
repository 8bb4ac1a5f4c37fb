// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/sweep.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "core/text.h"

namespace welkin::apps {
namespace {

// Splits at the commas between values. Commas within a list, a mapping or quotes belong to a value.
std::vector<std::string> values_in(std::string_view text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    }
    if (c == ',' && depth <= 0 && quote == 0) {
      values.emplace_back();
    } else {
      values.back() += c;
    }
  }
  return values;
}

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  return {};
}

}  // namespace

Sweep parse_sweep(const std::string& text) {
  const size_t equals = text.find('=');
  Sweep sweep{.key = text.substr(0, equals), .values = {}};
  if (equals != std::string::npos) sweep.values = values_in(std::string_view(text).substr(equals + 1));
  const bool is_whole = !sweep.key.empty() && !sweep.values.empty() && std::ranges::find(sweep.values, "") == sweep.values.end();
  if (is_whole) return sweep;
  throw ConfigError("bench", cat("no sweep: --sweep ", text),
                    "Write --sweep key=value,value, for instance --sweep threads=1,2,4");
}

std::vector<double> numbers_of(const Sweep& sweep) {
  std::vector<double> numbers;
  for (const std::string& value : sweep.values) {
    const std::optional<double> number = number_in(value);
    if (!number || std::ranges::find(numbers, *number) != numbers.end()) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace welkin::apps
