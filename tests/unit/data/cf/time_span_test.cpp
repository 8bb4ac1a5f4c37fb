// SPDX-License-Identifier: Apache-2.0
// Spans of time as dates say them.
#include "data/cf/time_span.h"

#include <gmock/gmock.h>

#include "core/error.h"

namespace welkin::data::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr Calendar kGregorian = Calendar::ProlepticGregorian;

int64_t at(const char* date) { return parse_date(date, kGregorian); }

TEST(TimeSpanTest, AYearBeyondAllBoundsIsNoDate) {
  for (const char* year : {"-9223372036854775808", "9223372036854775807", "-1000001"}) {
    EXPECT_THROW(time_span({year, "2000"}, Calendar::NoLeap, "train_times"), ConfigError) << year;
    EXPECT_THROW(parse_date(year, Calendar::NoLeap), ConfigError) << year;
  }
}

TEST(TimeSpanTest, TheLastYearThatADateCanHaveIsAYear) {
  const TimeSpan year = time_span({"1000000", "1000000"}, kGregorian, "train_times");
  EXPECT_EQ(year.end - year.begin, 366 * 86400);
  const TimeSpan month = time_span({"1000000-12", "1000000-12"}, kGregorian, "train_times");
  EXPECT_EQ(month.end - month.begin, 31 * 86400);
  EXPECT_EQ(month.end, year.end);
}

TEST(TimeSpanTest, TheLastDateStandsForAllOfItsYearMonthDayOrHour) {
  const TimeSpan years = time_span({"1979", "2015"}, kGregorian, "train_times");
  EXPECT_TRUE(years.holds(at("1979-01-01")));
  EXPECT_FALSE(years.holds(at("1978-12-31T23")));
  EXPECT_TRUE(years.holds(at("2015-12-31T23:59:59")));
  EXPECT_FALSE(years.holds(at("2016-01-01")));
  EXPECT_EQ(time_span({"1979-02", "1979-02"}, kGregorian, "").end, at("1979-03-01"));
  EXPECT_EQ(time_span({"1979-12", "1979-12"}, kGregorian, "").end, at("1980-01-01"));
  EXPECT_EQ(time_span({"1979", "1979-03-05"}, kGregorian, "").end, at("1979-03-06"));
  EXPECT_EQ(time_span({"1979", "1979-03-05T06"}, kGregorian, "").end, at("1979-03-05T07"));
  EXPECT_EQ(time_span({"1979", "1979-03-05T06:30"}, kGregorian, "").end, at("1979-03-05T06:31"));
}

TEST(TimeSpanTest, CalendarsHaveTheirOwnDays) {
  const TimeSpan february = time_span({"0101-02", "0101-02"}, Calendar::Day360, "train_times");
  EXPECT_EQ(february.end - february.begin, 30 * 86400);
  EXPECT_EQ(time_span({"2000", "2000"}, Calendar::NoLeap, "").end - time_span({"2000", "2000"}, Calendar::NoLeap, "").begin,
            365 * 86400);
}

TEST(TimeSpanTest, NothingMeansAllTimes) { EXPECT_TRUE(time_span({}, kGregorian, "").holds(0)); }

TEST(TimeSpanTest, WhatIsNoSpanIsRefused) {
  const auto spanning = [](std::vector<std::string> dates) { return [dates] { time_span(dates, kGregorian, "valid_times"); }; };
  EXPECT_THAT(spanning({"1979"}), ThrowsMessage<ConfigError>(HasSubstr("times are a first and a last date: valid_times=[1979]")));
  EXPECT_THAT(spanning({"1980", "1979"}), ThrowsMessage<ConfigError>(HasSubstr("the last date is before the first")));
  EXPECT_THROW(spanning({"1979", "soon"})(), ConfigError);
  EXPECT_THROW(spanning({"1979", "1980-13"})(), ConfigError);
}

}  // namespace
}  // namespace welkin::data::tests
