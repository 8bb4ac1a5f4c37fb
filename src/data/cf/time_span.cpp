// SPDX-License-Identifier: Apache-2.0
#include "data/cf/time_span.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/error.h"
#include "core/text.h"

namespace welkin::data {
namespace {

constexpr int64_t kMostSpanYear = 1'000'000;

std::optional<int64_t> digits_of(std::string_view text) {
  int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = problem == std::errc() && end == text.data() + text.size();
  return whole && value >= 0 && value <= kMostSpanYear ? std::optional(value) : std::nullopt;
}

// The first second behind a year; behind the last one that a date can have there is no date.
int64_t end_of_year(Calendar calendar, int64_t year) {
  constexpr int64_t kDay = 86400;
  const int64_t begin = to_seconds(calendar, {.year = year});
  return begin + day_of_year(calendar, begin).days_in_year * kDay;
}

// "1979" and "1979-03", which parse_date() does not take.
std::optional<TimeSpan> span_of_years_or_months(std::string_view text, Calendar calendar) {
  const auto dash = text.find('-');
  const auto year = digits_of(text.substr(0, dash));
  if (!year) return {};
  if (dash == std::string_view::npos) {
    return TimeSpan{to_seconds(calendar, {.year = *year}), end_of_year(calendar, *year)};
  }
  const auto month = digits_of(text.substr(dash + 1));
  if (!month || *month < 1 || *month > 12) return {};
  const int64_t begin = to_seconds(calendar, {.year = *year, .month = static_cast<int>(*month)});
  if (*month == 12) return TimeSpan{begin, end_of_year(calendar, *year)};
  return TimeSpan{begin, to_seconds(calendar, {.year = *year, .month = static_cast<int>(*month) + 1})};
}

TimeSpan span_of_date(const std::string& text, Calendar calendar) {
  constexpr int64_t kDay = 86400, kHour = 3600, kMinute = 60;
  if (const auto span = span_of_years_or_months(text, calendar)) return *span;
  const int64_t begin = parse_date(text, calendar);
  const auto colons = std::ranges::count(text, ':');
  const bool has_hour = text.find('T') != std::string::npos || text.find(' ') != std::string::npos;
  const int64_t length = !has_hour ? kDay : colons == 0 ? kHour : colons == 1 ? kMinute : 1;
  return {begin, begin + length};
}

}  // namespace

TimeSpan time_span(const std::vector<std::string>& dates, Calendar calendar, const std::string& key) {
  if (dates.empty()) return {};
  if (dates.size() != 2) {
    throw ConfigError("data", cat("times are a first and a last date: ", key, "=[", join(dates, ", "), "]"),
                      "Write for instance [1979, 2015] or [1979-01-01, 2015-12-31T18]");
  }
  const TimeSpan span{span_of_date(dates[0], calendar).begin, span_of_date(dates[1], calendar).end};
  if (span.begin < span.end) return span;
  throw ConfigError("data", cat("the last date is before the first: ", key, "=[", join(dates, ", "), "]"),
                    "Write the first date first");
}

}  // namespace welkin::data
