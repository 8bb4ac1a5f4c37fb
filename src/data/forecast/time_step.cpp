// SPDX-License-Identifier: Apache-2.0
#include "data/forecast/time_step.h"

#include "core/error.h"
#include "core/text.h"

namespace welkin::data {
namespace {

constexpr int64_t kDaySeconds = 86400;

// Months since the year 0.
int64_t month_number(const Date& date) { return date.year * 12 + date.month - 1; }

Date first_of_month(int64_t number) { return {.year = number / 12, .month = static_cast<int>(number % 12) + 1, .day = 1}; }

int64_t middle_of_month(Calendar calendar, int64_t number) {
  const int64_t begin = to_seconds(calendar, first_of_month(number)), end = to_seconds(calendar, first_of_month(number + 1));
  return begin + (end - begin) / 2;
}

bool is_last_day(Calendar calendar, int64_t seconds) {
  return to_date(calendar, seconds + kDaySeconds).month != to_date(calendar, seconds).month;
}

PlaceInMonth place_in_month(const std::vector<int64_t>& times, Calendar calendar) {
  bool middle = true, last = true;
  for (const int64_t time : times) {
    middle = middle && time == middle_of_month(calendar, month_number(to_date(calendar, time)));
    last = last && is_last_day(calendar, time);
  }
  return middle ? PlaceInMonth::Middle : last ? PlaceInMonth::LastDay : PlaceInMonth::Day;
}

bool is_month(int64_t seconds) { return seconds >= 28 * kDaySeconds && seconds <= 31 * kDaySeconds; }

// True for times of months that follow each other, each at the same place of its month. Two of them may be 28 days apart.
bool are_months(const std::vector<int64_t>& times, Calendar calendar) {
  const bool is_day = place_in_month(times, calendar) == PlaceInMonth::Day;
  const Date first = to_date(calendar, times.front());
  for (size_t i = 0; i < times.size(); ++i) {
    const Date date = to_date(calendar, times[i]);
    if (month_number(date) != month_number(first) + static_cast<int64_t>(i)) return false;
    if (is_day && (date.day != first.day || date.second_of_day != first.second_of_day)) return false;
  }
  return true;
}

}  // namespace

double hours_of(const TimeStep& step) {
  constexpr double kMonth = 30.436875 * 24;
  return static_cast<double>(step.seconds) / 3600 + static_cast<double>(step.months) * kMonth;
}

TimeStep time_step_of(const std::vector<int64_t>& times, Calendar calendar, const std::string& path) {
  if (times.size() < 2) return {};
  const int64_t first = times[1] - times[0];
  bool equal = true, months = calendar != Calendar::Day360;
  for (size_t i = 0; i + 1 < times.size(); ++i) {
    const int64_t step = times[i + 1] - times[i];
    equal = equal && step == first;
    months = months && is_month(step);
  }
  if (months && (!equal || are_months(times, calendar)))
    return {.seconds = 0, .months = 1, .place = place_in_month(times, calendar)};
  if (equal) return {.seconds = first, .months = 0};
  throw DataError("forecast", cat("the times of a file are not evenly spaced: path=", path, ", first_step_seconds=", first),
                  "Make it with welkin data ingest, which splits at gaps");
}

int64_t stepped(const TimeStep& step, Calendar calendar, int64_t seconds, int64_t count) {
  if (step.months == 0 || count == 0) return seconds + count * step.seconds;
  Date date = to_date(calendar, seconds);
  const int64_t month = month_number(date) + count * step.months;
  if (step.place == PlaceInMonth::Middle) return middle_of_month(calendar, month);
  if (step.place == PlaceInMonth::LastDay) date.day = 31;
  const Date first = first_of_month(month);
  date.year = first.year, date.month = first.month;
  while (!is_valid(calendar, date) && date.day > 28) --date.day;
  return to_seconds(calendar, date);
}

}  // namespace welkin::data
