// SPDX-License-Identifier: Apache-2.0
#include "launch/elastic/round.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

#include "core/error.h"
#include "core/text.h"

namespace welkin::launch {
namespace {

constexpr std::array<std::string_view, 3> kRoundStates{"open", "closing", "requested"};
constexpr int64_t kMostRanks = int64_t{1} << 20;

// Takes a whole number of the text from `at` on, and moves `at` behind it.
std::optional<int64_t> take_number(std::string_view text, size_t& at) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return {};
  at = static_cast<size_t>(end - text.data());
  return value;
}

}  // namespace

ElasticLimits parse_limits(const std::string& text) {
  size_t at = 0;
  const auto least = take_number(text, at);
  const bool has_colon = least && at < text.size() && text[at] == ':';
  const auto most = has_colon ? take_number(text, ++at) : std::nullopt;
  if (!most || at != text.size() || *most > kMostRanks) {
    throw ConfigError("launch", cat("not MIN:MAX: elastic=", text), "For instance --elastic 2:4");
  }
  if (*least == 0) {
    throw ConfigError("launch", cat("a run needs a rank at least: elastic=", text), "Take a MIN of 1 or more");
  }
  if (*least > *most) {
    throw ConfigError("launch", cat("MIN is above MAX: elastic=", text), cat("Did you mean ", *most, ":", *least));
  }
  return {.least = *least, .most = *most};
}

std::string text_of(const ProcessId& id) { return cat(id.node, ".", id.local, ".", id.start); }

std::optional<ProcessId> parse_process_id(std::string_view text) {
  std::array<int64_t, 3> numbers{};
  size_t at = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0 && (at >= text.size() || text[at++] != '.')) return {};
    const auto number = take_number(text, at);
    if (!number) return {};
    numbers[i] = *number;
  }
  if (at != text.size()) return {};
  return ProcessId{.node = numbers[0], .local = numbers[1], .start = numbers[2]};
}

std::optional<int64_t> Round::rank_of(const ProcessId& id) const {
  const auto found = std::ranges::find(members, id);
  if (found == members.end()) return {};
  return found - members.begin();
}

std::string text_of(const Round& round) {
  std::string note = round.note;
  std::ranges::replace(note, '\n', ' ');
  std::vector<std::string> ids;
  for (const ProcessId& id : round.members) ids.push_back(text_of(id));
  return cat(round.has_begun ? "begun" : "new", "\n", note, "\n", join(ids, " "));
}

std::optional<Round> parse_round(int64_t number, const std::string& text) {
  std::istringstream lines(text);
  std::string begun, ids;
  Round round{.number = number, .has_begun = false, .note = {}, .members = {}};
  if (!std::getline(lines, begun) || !std::getline(lines, round.note) || !std::getline(lines, ids)) return {};
  if (begun != "begun" && begun != "new") return {};
  round.has_begun = begun == "begun";
  std::istringstream words(ids);
  for (std::string word; words >> word;) {
    const auto id = parse_process_id(word);
    if (!id) return {};
    round.members.push_back(*id);
  }
  if (round.members.empty()) return {};
  return round;
}

std::string now_text(int64_t number, RoundState state) { return cat(number, " ", kRoundStates[static_cast<size_t>(state)]); }

std::optional<Now> parse_now(const std::string& text) {
  size_t at = 0;
  const auto number = take_number(text, at);
  if (!number || at >= text.size()) return {};
  const auto found = std::ranges::find(kRoundStates, std::string_view(text).substr(at + 1));
  if (found == kRoundStates.end()) return {};
  return Now{.number = *number, .state = static_cast<RoundState>(found - kRoundStates.begin())};
}

}  // namespace welkin::launch
