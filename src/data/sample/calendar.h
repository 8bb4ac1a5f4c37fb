// SPDX-License-Identifier: Apache-2.0
// Dates of the CF calendars (CF conventions 1.10, section 4.4.1) as seconds since 1970-01-01T00:00 of the same calendar. No leap
// seconds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace welkin::data {

enum class Calendar {
  ProlepticGregorian,
  Standard,  // Julian before 1582-10-15; the same count of days as ProlepticGregorian from then on
  Julian,
  NoLeap,   // 365 days
  AllLeap,  // 366 days
  Day360,   // 12 months of 30 days
};

struct Date {
  int64_t year = 1970;
  int month = 1, day = 1;     // from 1
  int64_t second_of_day = 0;  // [0, 86400)
};

// CF names and their synonyms ("gregorian", "365_day", ...); empty = standard. Throws DataError with the known names.
Calendar parse_calendar(std::string_view name);
std::string_view name_of(Calendar calendar);

// The calendar in which files are written: Standard and Julian times count the same days as ProlepticGregorian and are
// relabelled, the others stay.
Calendar written_calendar(Calendar calendar);

bool is_valid(Calendar calendar, const Date& date);
// Years within +-1,000,000; throws DataError for a date that the calendar does not have.
int64_t to_seconds(Calendar calendar, const Date& date);
Date to_date(Calendar calendar, int64_t seconds);

// Days of the year so far, [0, 366), with the fraction of the day; and the days of that year (360, 365 or 366).
struct DayOfYear {
  double day = 0.0;
  int days_in_year = 365;
};
DayOfYear day_of_year(Calendar calendar, int64_t seconds);

// "2019-03-25", "2019-03-25T06", "2019-03-25 06:00", "...T06:00:30[.5][Z|UTC|+01:00]" -> seconds. Throws
// ConfigError: flags have this form.
int64_t parse_date(std::string_view text, Calendar calendar);
// "2019-03-25T06:00:00"
std::string format_date(Calendar calendar, int64_t seconds);

// Units of a CF time axis: "hours since 1900-01-01 00:00:00".
struct TimeUnits {
  double seconds_per_unit = 1.0;
  int64_t reference = 0;  // seconds since 1970-01-01 of the calendar
  Calendar calendar = Calendar::ProlepticGregorian;

  int64_t to_seconds(double value) const;  // to the nearest second; throws DataError when not finite or absurd
};

// Months and years count only in the 360_day calendar, where they have a length. Throws DataError.
TimeUnits parse_time_units(std::string_view units, std::string_view calendar);

// "6h", "168h", "30m", "7d", "90s" -> seconds, positive. Throws ConfigError.
int64_t parse_duration(std::string_view text);

}  // namespace welkin::data
