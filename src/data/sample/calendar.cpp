// SPDX-License-Identifier: Apache-2.0
#include "data/sample/calendar.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

#include "core/error.h"
#include "core/text.h"
#include "data/sample/time_unit.h"

namespace welkin::data {
namespace {

constexpr int64_t kSecondsPerDay = 86400;
constexpr int64_t kFarthestYear = 1'000'000;
constexpr int64_t kFirstGregorianDay = -141427;  // 1582-10-15

struct CalendarName {
  std::string_view name;
  Calendar calendar;
};

constexpr std::array<CalendarName, 10> kCalendarNames{{{"proleptic_gregorian", Calendar::ProlepticGregorian},
                                                       {"standard", Calendar::Standard},
                                                       {"gregorian", Calendar::Standard},
                                                       {"julian", Calendar::Julian},
                                                       {"noleap", Calendar::NoLeap},
                                                       {"365_day", Calendar::NoLeap},
                                                       {"all_leap", Calendar::AllLeap},
                                                       {"366_day", Calendar::AllLeap},
                                                       {"360_day", Calendar::Day360},
                                                       {"", Calendar::Standard}}};

constexpr std::array<int, 12> kMonthDays{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

bool is_leap(Calendar calendar, int64_t year) {
  switch (calendar) {
    case Calendar::NoLeap:
    case Calendar::Day360:
      return false;
    case Calendar::AllLeap:
      return true;
    case Calendar::Julian:
      return year % 4 == 0;
    case Calendar::Standard:
      return year <= 1582 ? year % 4 == 0 : is_leap(Calendar::ProlepticGregorian, year);
    case Calendar::ProlepticGregorian:
      return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  }
  return false;
}

int days_in_month(Calendar calendar, int64_t year, int month) {
  if (calendar == Calendar::Day360) return 30;
  return kMonthDays[static_cast<size_t>(month - 1)] + (month == 2 && is_leap(calendar, year) ? 1 : 0);
}

// Days from 1 January of year 0 to 1 January of `year`, in a calendar of one rule. Leap years so far: those below `year`.
int64_t days_before_year(Calendar calendar, int64_t year) {
  const int64_t leap4 = floor_div(year + 3, 4);
  switch (calendar) {
    case Calendar::NoLeap:
      return 365 * year;
    case Calendar::AllLeap:
      return 366 * year;
    case Calendar::Day360:
      return 360 * year;
    case Calendar::Julian:
      return 365 * year + leap4;
    default:
      return 365 * year + leap4 - floor_div(year + 99, 100) + floor_div(year + 399, 400);
  }
}

int64_t days_since_year_zero(Calendar calendar, int64_t year, int month, int day) {
  int64_t days = days_before_year(calendar, year) + day - 1;
  for (int m = 1; m < month; ++m) days += days_in_month(calendar, year, m);
  return days;
}

// Day 0 is 1970-01-01 of the calendar; in the Julian one it is the day that the Gregorian calendar calls 1970-01-01.
int64_t epoch_day(Calendar calendar) {
  if (calendar == Calendar::Julian) return days_since_year_zero(Calendar::Julian, 1969, 12, 19);
  return days_since_year_zero(calendar, 1970, 1, 1);
}

bool is_gregorian_part(const Date& date) {
  return date.year > 1582 || (date.year == 1582 && (date.month > 10 || (date.month == 10 && date.day >= 15)));
}

int64_t days_from_date(Calendar calendar, const Date& date) {
  if (calendar == Calendar::Standard) calendar = is_gregorian_part(date) ? Calendar::ProlepticGregorian : Calendar::Julian;
  return days_since_year_zero(calendar, date.year, date.month, date.day) - epoch_day(calendar);
}

Date date_from_days(Calendar calendar, int64_t days) {
  if (calendar == Calendar::Standard) calendar = days >= kFirstGregorianDay ? Calendar::ProlepticGregorian : Calendar::Julian;
  const int64_t target = days + epoch_day(calendar);
  Date date;
  const double mean_length = static_cast<double>(days_before_year(calendar, 400)) / 400.0;
  date.year = static_cast<int64_t>(std::floor(static_cast<double>(target) / mean_length)) - 1;
  while (days_before_year(calendar, date.year + 1) <= target) ++date.year;
  int64_t rest = target - days_before_year(calendar, date.year);
  for (date.month = 1; rest >= days_in_month(calendar, date.year, date.month); ++date.month) {
    rest -= days_in_month(calendar, date.year, date.month);
  }
  date.day = static_cast<int>(rest) + 1;
  return date;
}

// A reader of numbers and separators from the left of a text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool integer(int64_t& out) {
    const auto [end, code] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), out);
    if (code != std::errc{}) return false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return true;
  }
  bool number(double& out) {
    const auto [end, code] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), out, std::chars_format::fixed);
    if (code != std::errc{}) return false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return true;
  }
  bool skip(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void skip_spaces() {
    while (skip(' ')) {
    }
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// "+01:00", "-5", "Z", "UTC", "GMT" or nothing, in seconds east of Greenwich.
bool scan_zone(Scanner& scanner, int64_t& east) {
  scanner.skip_spaces();
  east = 0;
  const std::string_view rest = scanner.rest();
  if (rest.empty() || rest == "Z" || rest == "UTC" || rest == "GMT") return true;
  const bool west = rest.front() == '-';
  int64_t hours = 0, minutes = 0;
  if (!scanner.skip('+') && !scanner.skip('-')) return false;
  if (!scanner.integer(hours) || hours < 0 || (scanner.skip(':') && !scanner.integer(minutes))) return false;
  if (hours >= 100) minutes = hours % 100, hours /= 100;  // "+0530"
  if (!scanner.rest().empty() || hours > 18 || minutes < 0 || minutes > 59) return false;
  east = (west ? -1 : 1) * (hours * 3600 + minutes * 60);
  return true;
}

bool scan_clock(Scanner& scanner, int64_t& second_of_day) {
  int64_t hour = 0, minute = 0;
  double second = 0;
  if (!scanner.integer(hour)) return false;
  if (scanner.skip(':')) {
    if (!scanner.integer(minute)) return false;
    if (scanner.skip(':') && !scanner.number(second)) return false;
  }
  if (hour < 0 || hour > 24 || minute < 0 || minute > 59 || !(second >= 0 && second < 61)) return false;
  second_of_day = hour * 3600 + minute * 60 + std::llround(second);
  return true;
}

bool scan_date(std::string_view text, Calendar calendar, int64_t& seconds) {
  Scanner scanner(text);
  Date date;
  int64_t month = 1, day = 1, clock = 0, east = 0;
  if (!scanner.integer(date.year)) return false;
  if (scanner.skip('-') && !scanner.integer(month)) return false;
  if (scanner.skip('-') && !scanner.integer(day)) return false;
  if (month < 1 || month > 12 || day < 1 || day > 31) return false;
  date.month = static_cast<int>(month), date.day = static_cast<int>(day);
  const bool has_t = scanner.skip('T');
  scanner.skip_spaces();
  const bool has_clock = !scanner.rest().empty() && scanner.rest().front() >= '0' && scanner.rest().front() <= '9';
  if ((has_t && !has_clock) || (has_clock && !scan_clock(scanner, clock)) || !scan_zone(scanner, east)) return false;
  if (!is_valid(calendar, date)) return false;
  seconds = to_seconds(calendar, date) + clock - east;
  return true;
}

struct UnitName {
  std::string_view name;
  double seconds;
};

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

constexpr std::array<UnitName, 34> kUnits{{{"milliseconds", 1e-3},
                                           {"millisecond", 1e-3},
                                           {"millisecs", 1e-3},
                                           {"millisec", 1e-3},
                                           {"msecs", 1e-3},
                                           {"msec", 1e-3},
                                           {"ms", 1e-3},
                                           {"microseconds", 1e-6},
                                           {"microsecond", 1e-6},
                                           {"microsecs", 1e-6},
                                           {"microsec", 1e-6},
                                           {"us", 1e-6},
                                           {"nanoseconds", 1e-9},
                                           {"nanosecond", 1e-9},
                                           {"ns", 1e-9},
                                           {"seconds", 1},
                                           {"second", 1},
                                           {"secs", 1},
                                           {"sec", 1},
                                           {"s", 1},
                                           {"minutes", 60},
                                           {"minute", 60},
                                           {"mins", 60},
                                           {"min", 60},
                                           {"hours", 3600},
                                           {"hour", 3600},
                                           {"hrs", 3600},
                                           {"hr", 3600},
                                           {"h", 3600},
                                           {"days", 86400},
                                           {"day", 86400},
                                           {"d", 86400},
                                           {"weeks", 604800},
                                           {"week", 604800}}};

}  // namespace

Calendar parse_calendar(std::string_view name) {
  const auto found = std::ranges::find(kCalendarNames, name, &CalendarName::name);
  if (found != kCalendarNames.end()) return found->calendar;
  throw DataError("calendar", cat("unknown calendar: calendar=", name),
                  "Known are standard, gregorian, proleptic_gregorian, julian, noleap, 365_day, all_leap, 366_day and 360_day");
}

std::string_view name_of(Calendar calendar) { return std::ranges::find(kCalendarNames, calendar, &CalendarName::calendar)->name; }

Calendar written_calendar(Calendar calendar) {
  const bool counts_days = calendar == Calendar::Standard || calendar == Calendar::Julian;
  return counts_days ? Calendar::ProlepticGregorian : calendar;
}

bool is_valid(Calendar calendar, const Date& date) {
  if (date.year < -kFarthestYear || date.year > kFarthestYear || date.month < 1 || date.month > 12 || date.day < 1) return false;
  const bool switched = calendar == Calendar::Standard && date.year == 1582 && date.month == 10;
  if (switched && date.day > 4 && date.day < 15) return false;  // the days that 1582 did not have
  return date.day <= days_in_month(calendar, date.year, date.month) && date.second_of_day >= 0 &&
         date.second_of_day < kSecondsPerDay;
}

int64_t to_seconds(Calendar calendar, const Date& date) {
  if (!is_valid(calendar, date)) {
    throw DataError(
        "calendar",
        cat("no such date: calendar=", name_of(calendar), ", year=", date.year, ", month=", date.month, ", day=", date.day),
        "Check the calendar of the time axis");
  }
  return days_from_date(calendar, date) * kSecondsPerDay + date.second_of_day;
}

Date to_date(Calendar calendar, int64_t seconds) {
  const int64_t days = floor_div(seconds, kSecondsPerDay);
  Date date = date_from_days(calendar, days);
  date.second_of_day = seconds - days * kSecondsPerDay;
  return date;
}

DayOfYear day_of_year(Calendar calendar, int64_t seconds) {
  const Date date = to_date(calendar, seconds);
  const int64_t start = days_from_date(calendar, {date.year, 1, 1, 0});
  const int64_t end = days_from_date(calendar, {date.year + 1, 1, 1, 0});  // of the last year: no valid date any more
  return {static_cast<double>(seconds - start * kSecondsPerDay) / static_cast<double>(kSecondsPerDay),
          static_cast<int>(end - start)};
}

int64_t parse_date(std::string_view text, Calendar calendar) {
  int64_t seconds = 0;
  if (scan_date(text, calendar, seconds)) return seconds;
  throw ConfigError("calendar", cat("not a date: text=", text.substr(0, 64), ", calendar=", name_of(calendar)),
                    "Write it like 2019-03-25 or 2019-03-25T06:00");
}

std::string format_date(Calendar calendar, int64_t seconds) {
  const Date date = to_date(calendar, seconds);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04lld-%02d-%02dT%02d:%02d:%02d", static_cast<long long>(date.year), date.month,
                date.day, static_cast<int>(date.second_of_day / 3600), static_cast<int>(date.second_of_day / 60 % 60),
                static_cast<int>(date.second_of_day % 60));
  return text.data();
}

int64_t TimeUnits::to_seconds(double value) const {
  constexpr double kFarthest = 3.2e13;  // seconds in a million years
  const double seconds = value * seconds_per_unit;
  if (!(std::abs(seconds) < kFarthest)) {
    throw DataError("calendar", cat("not a valid time: value=", value), "Repair the time axis of the file");
  }
  return reference + std::llround(seconds);
}

std::optional<double> seconds_of_unit(std::string_view unit) {
  const std::string word = unit.size() <= 2 ? std::string(unit) : lower_case(unit);
  const auto found = std::ranges::find(kUnits, word, &UnitName::name);
  return found == kUnits.end() ? std::nullopt : std::optional(found->seconds);
}

TimeUnits parse_time_units(std::string_view units, std::string_view calendar) {
  TimeUnits result;
  result.calendar = parse_calendar(lower_case(calendar));
  constexpr std::string_view kSince = " since ";
  const std::string lower = lower_case(units);
  const size_t since = lower.find(kSince);
  const auto fail = [&](std::string_view remedy) -> DataError {
    return {"calendar", cat("cannot read the units of time: units=", units.substr(0, 128), ", calendar=", calendar), remedy};
  };
  if (since == std::string_view::npos) throw fail("Write them like: hours since 1900-01-01 00:00:00");
  const std::string_view word = std::string_view(lower).substr(0, since);
  const auto seconds = seconds_of_unit(word);
  const bool months = word == "months" || word == "month";
  const bool years = word == "years" || word == "year" || word == "common_years";
  if (seconds) {
    result.seconds_per_unit = *seconds;
  } else if ((months || years) && result.calendar == Calendar::Day360) {
    result.seconds_per_unit = static_cast<double>(kSecondsPerDay) * (months ? 30 : 360);
  } else {
    throw fail(months || years
                   ? "Months and years have no fixed length: convert the axis to days (cdo -settunits,days in.nc out.nc)"
                   : "Write them like: hours since 1900-01-01 00:00:00");
  }
  if (!scan_date(units.substr(since + kSince.size()), result.calendar, result.reference)) {
    throw fail("Write them like: hours since 1900-01-01 00:00:00");
  }
  return result;
}

int64_t parse_duration(std::string_view text) {
  Scanner scanner(text);
  int64_t count = 0;
  constexpr int64_t kMost = 10'000'000;
  if (scanner.integer(count) && count > 0 && count <= kMost && scanner.rest().size() == 1) {
    switch (scanner.rest().front()) {
      case 's':
        return count;
      case 'm':
        return count * 60;
      case 'h':
        return count * 3600;
      case 'd':
        return count * kSecondsPerDay;
      default:
        break;
    }
  }
  throw ConfigError("calendar", cat("not a length of time: text=", text.substr(0, 64)), "Write it like 30m, 6h, 168h or 7d");
}

}  // namespace welkin::data
