// SPDX-License-Identifier: Apache-2.0
// Durations as batch systems write them: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes,
// days-hours:minutes:seconds (sbatch --time).
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace welkin {

// A number of digits alone; nullopt where it is none or has more than nine.
inline std::optional<int64_t> parse_count(std::string_view text) {
  constexpr size_t kMostDigits = 9;
  if (text.empty() || text.size() > kMostDigits || text.find_first_not_of("0123456789") != std::string_view::npos) return {};
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Seconds; nullopt where the text is no duration.
inline std::optional<int64_t> parse_duration_s(std::string_view text) {
  constexpr int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  int64_t days = 0;
  const size_t dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  if (has_days) {
    const auto found = parse_count(text.substr(0, dash));
    if (!found) return {};
    days = *found;
    text.remove_prefix(dash + 1);
  }
  std::vector<int64_t> parts;
  for (bool ends = false; !ends;) {
    const size_t colon = text.find(':');
    const auto found = parse_count(text.substr(0, colon));
    if (!found || parts.size() == 3) return {};
    parts.push_back(*found);
    ends = colon == std::string_view::npos;
    if (!ends) text.remove_prefix(colon + 1);
  }
  if (has_days || parts.size() == 3) {
    parts.resize(3);
    return days * kDay + parts[0] * kHour + parts[1] * kMinute + parts[2];
  }
  parts.resize(2);
  return parts[0] * kMinute + parts[1];
}

}  // namespace welkin
