// SPDX-License-Identifier: Apache-2.0
// Regular expressions come from users, and a backtracking matcher takes exponential time on some. POSIX extended expressions have
// no look-ahead; libstdc++'s polynomial matcher refuses back references; counts, which multiply states, are refused here.
#include "config/schema/checkpointing.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <regex>

#include "config/schema/key.h"
#include "config/yaml/yaml_scalar.h"
#include "core/text.h"

namespace welkin::config {
namespace {

constexpr std::string_view kPattern = "pattern:", kBudget = "budget:";
constexpr size_t kLongestPattern = 200;

std::regex compiled(const std::string& pattern) {
  return std::regex(pattern, std::regex::extended | std::regex::nosubs | std::regex_constants::__polynomial);
}

std::optional<Checkpointing> parse_pattern(std::string_view text, std::string& problem) {
  Checkpointing value(CheckpointedPart::Pattern);
  value.pattern = text;
  if (text.empty() || text.size() > kLongestPattern) {
    problem = cat("wants pattern:REGEX with 1 to ", kLongestPattern, " characters, has ", text.size());
    return {};
  }
  if (text.find('{') != std::string_view::npos) {
    problem = cat("wants a regular expression without counts in braces, is ", text);
    return {};
  }
  try {
    compiled(value.pattern);
  } catch (const std::regex_error& error) {
    problem = cat("wants a POSIX extended regular expression, is ", text, " (", error.what(), ")");
    return {};
  }
  return value;
}

std::optional<Checkpointing> parse_budget(std::string_view text, std::string& problem) {
  Checkpointing value(CheckpointedPart::Budget);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value.budget_gib);
  const bool is_number = error == std::errc() && end == text.data() + text.size() && std::isfinite(value.budget_gib);
  if (is_number && value.budget_gib > 0) return value;
  problem = cat("wants budget:GIB with a number above 0, is budget:", text);
  return {};
}

}  // namespace

std::optional<Checkpointing> parse_checkpointing(std::string_view text, std::string& problem) {
  if (text.starts_with(kPattern)) return parse_pattern(text.substr(kPattern.size()), problem);
  if (text.starts_with(kBudget)) return parse_budget(text.substr(kBudget.size()), problem);
  const auto part = choice_named<CheckpointedPart>(text);
  if (part && *part != CheckpointedPart::Pattern && *part != CheckpointedPart::Budget) return Checkpointing(*part);
  problem = cat("is none of ", join(split(kNames<Checkpointing>, '|'), ", "));
  return {};
}

std::string text_of(const Checkpointing& value) {
  if (value.part == CheckpointedPart::Pattern) return cat(kPattern, value.pattern);
  if (value.part == CheckpointedPart::Budget) return cat(kBudget, float_text(value.budget_gib));
  return std::string(name_of(value.part));
}

int64_t StepCounts::most() const { return numbers.empty() ? 1 : *std::ranges::max_element(numbers); }

std::string text_of(const StepCounts& value) {
  return value.numbers.size() == 1 ? std::to_string(value.numbers.front()) : cat("[", join(value.numbers, ", "), "]");
}

std::string text_of(const MicroBatchSize& value) { return value.is_auto ? "auto" : std::to_string(value.samples); }
std::string text_of(const CheckpointInterval& value) { return value.is_auto ? "auto" : std::to_string(value.steps); }

bool matches_regex(const std::string& pattern, const std::string& name) { return std::regex_match(name, compiled(pattern)); }

}  // namespace welkin::config
