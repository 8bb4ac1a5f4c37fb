// SPDX-License-Identifier: Apache-2.0
// CF calendars: days counted by cftime 1.6 (num2date/date2num), and the texts of units, dates and lengths of time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "data/sample/calendar.h"

namespace {

using welkin::data::Calendar;

constexpr int64_t kDay = 86400;

TEST(IngestCalendar, DaysAgreeWithCftime) {
  struct Row {
    Calendar calendar;
    welkin::data::Date date;
    int64_t days;  // cftime.date2num(date, 'days since 1970-01-01', calendar)
  };
  const Row rows[] = {
      {Calendar::ProlepticGregorian, {101, 1, 16, 0}, -682623}, {Calendar::ProlepticGregorian, {2000, 2, 29, 0}, 11016},
      {Calendar::ProlepticGregorian, {1, 1, 1, 0}, -719162},    {Calendar::Standard, {1582, 10, 15, 0}, -141427},
      {Calendar::Standard, {1582, 10, 4, 0}, -141428},          {Calendar::Standard, {1, 1, 1, 0}, -719164},
      {Calendar::NoLeap, {2000, 3, 1, 0}, 30 * 365 + 59},       {Calendar::AllLeap, {1971, 1, 1, 0}, 366},
      {Calendar::Day360, {1850, 12, 30, 0}, -119 * 360 - 1}};
  for (const Row& row : rows) {
    const int64_t seconds = welkin::data::to_seconds(row.calendar, row.date);
    EXPECT_EQ(seconds, row.days * kDay) << name_of(row.calendar) << " " << row.date.year;
    const auto back = welkin::data::to_date(row.calendar, seconds + 3661);
    EXPECT_EQ(back.year, row.date.year);
    EXPECT_EQ(back.month, row.date.month);
    EXPECT_EQ(back.day, row.date.day);
    EXPECT_EQ(back.second_of_day, 3661);
  }
}

TEST(IngestCalendar, TheLastYearThatADateCanHaveHasDays) {
  for (const auto calendar : {Calendar::ProlepticGregorian, Calendar::Standard, Calendar::Julian, Calendar::NoLeap,
                              Calendar::AllLeap, Calendar::Day360}) {
    const auto day = welkin::data::day_of_year(calendar, welkin::data::parse_date("1000000-12-30", calendar));
    EXPECT_EQ(day.days_in_year, calendar == Calendar::Day360 ? 360 : calendar == Calendar::NoLeap ? 365 : 366);
    EXPECT_EQ(day.day, calendar == Calendar::Day360 ? 359 : day.days_in_year - 2);
  }
}

TEST(IngestCalendar, EveryDayRoundTrips) {
  for (const auto calendar : {Calendar::ProlepticGregorian, Calendar::Standard, Calendar::Julian, Calendar::NoLeap,
                              Calendar::AllLeap, Calendar::Day360}) {
    for (int64_t day = -800'000; day < 100'000; day += 37) {
      const auto date = welkin::data::to_date(calendar, day * kDay);
      ASSERT_EQ(welkin::data::to_seconds(calendar, date), day * kDay) << name_of(calendar) << " " << day;
    }
  }
}

TEST(IngestCalendar, ReadsUnits) {
  const auto hours = welkin::data::parse_time_units("hours since 1900-01-01 00:00:00.0", "gregorian");
  EXPECT_EQ(hours.to_seconds(1008072), welkin::data::parse_date("2015-01-01", Calendar::ProlepticGregorian));
  const auto days = welkin::data::parse_time_units("days since 1850-1-1", "noleap");
  EXPECT_EQ(days.to_seconds(15.5), welkin::data::parse_date("1850-01-16T12", Calendar::NoLeap));
  const auto old = welkin::data::parse_time_units("hours since 1-1-1 00:00:0.0", "standard");  // as in the first NCEP reanalysis
  EXPECT_EQ(old.to_seconds(17522904), welkin::data::parse_date("2000-01-01", Calendar::ProlepticGregorian));
  EXPECT_EQ(welkin::data::parse_time_units("Days since 1970-01-01", "").to_seconds(1), kDay);
  const auto zone = welkin::data::parse_time_units("seconds since 1970-01-01T00:00:00+01:00", "");
  EXPECT_EQ(zone.to_seconds(0), -3600);
  const auto months = welkin::data::parse_time_units("months since 1850-01-01", "360_day");
  EXPECT_EQ(months.to_seconds(1.5), welkin::data::parse_date("1850-02-16", Calendar::Day360));
}

TEST(IngestCalendar, RefusesWhatIsNoTime) {
  EXPECT_THROW(welkin::data::parse_time_units("months since 1850-01-01", "noleap"), welkin::DataError);
  EXPECT_THROW(welkin::data::parse_time_units("hours since tomorrow", ""), welkin::DataError);
  EXPECT_THROW(welkin::data::parse_time_units("hours since 2019-02-29", ""), welkin::DataError);
  EXPECT_THAT([] { welkin::data::parse_time_units("fortnights since 1850-01-01", ""); },
              testing::ThrowsMessage<welkin::DataError>(
                  testing::EndsWith("calendar=. Write them like: hours since 1900-01-01 00:00:00.")));
  EXPECT_THROW(welkin::data::parse_calendar("mayan"), welkin::DataError);
  EXPECT_THROW(welkin::data::parse_date("2019-13-01", Calendar::Standard), welkin::ConfigError);
  EXPECT_THROW(welkin::data::parse_date("1582-10-10", Calendar::Standard), welkin::ConfigError);
  EXPECT_THROW(welkin::data::parse_date("2019-03-25T", Calendar::Standard), welkin::ConfigError);
  EXPECT_THROW(welkin::data::TimeUnits{}.to_seconds(1e300), welkin::DataError);
  EXPECT_THROW(welkin::data::TimeUnits{}.to_seconds(std::numeric_limits<double>::quiet_NaN()), welkin::DataError);
}

TEST(IngestCalendar, ReadsLengthsOfTime) {
  EXPECT_EQ(welkin::data::parse_duration("168h"), 7 * kDay);
  EXPECT_EQ(welkin::data::parse_duration("7d"), 7 * kDay);
  EXPECT_THROW(welkin::data::parse_duration("7"), welkin::ConfigError);
  EXPECT_THROW(welkin::data::parse_duration("-6h"), welkin::ConfigError);
  EXPECT_THROW(welkin::data::parse_duration("99999999999999999999h"), welkin::ConfigError);
}

TEST(IngestCalendar, WritesDates) {
  EXPECT_EQ(welkin::data::format_date(Calendar::ProlepticGregorian, -1), "1969-12-31T23:59:59");
  EXPECT_EQ(welkin::data::format_date(Calendar::ProlepticGregorian,
                                      welkin::data::parse_date("0101-01-16T12", Calendar::ProlepticGregorian)),
            "0101-01-16T12:00:00");
}

}  // namespace
