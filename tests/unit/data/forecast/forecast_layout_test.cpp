// SPDX-License-Identifier: Apache-2.0
// Steps of time, names, and the layout of a forecast file.
#include "data/forecast/forecast_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "core/error.h"
#include "data/forecast/time_step.h"

namespace welkin::data {
namespace {

using ::testing::ElementsAre;

constexpr auto kForecastCalendar = Calendar::ProlepticGregorian;

int64_t at(const char* date, Calendar calendar = kForecastCalendar) { return parse_date(date, calendar); }

TEST(TimeStep, HoursAreAddedAndMonthsCounted) {
  const TimeStep hours = time_step_of({at("2020-01-01"), at("2020-01-01T06"), at("2020-01-01T12")}, kForecastCalendar, "a");
  EXPECT_EQ(hours.seconds, 21600);
  EXPECT_EQ(stepped(hours, kForecastCalendar, at("2020-02-28T18"), 2), at("2020-02-29T06"));
  const TimeStep months = time_step_of({at("2020-01-15"), at("2020-02-15"), at("2020-03-15")}, kForecastCalendar, "a");
  EXPECT_EQ(months.months, 1);
  EXPECT_EQ(stepped(months, kForecastCalendar, at("2020-01-31T12"), 1), at("2020-02-29T12"));
  EXPECT_EQ(stepped(months, kForecastCalendar, at("2020-01-15"), -13), at("2018-12-15"));
  EXPECT_FALSE(time_step_of({at("2020-01-01")}, kForecastCalendar, "a").is_known());
}

// As CMIP gives the times of monthly means.
TEST(TimeStep, TheMiddleOfAMonthIsFollowedByThatOfTheNext) {
  for (const auto& [calendar, february] :
       {std::pair{Calendar::ProlepticGregorian, "2020-02-15T12"}, {Calendar::NoLeap, "2020-02-15"}}) {
    const auto time = [&](const char* text) { return at(text, calendar); };
    const TimeStep step = time_step_of({time("2019-12-16T12"), time("2020-01-16T12"), time(february)}, calendar, "a");
    EXPECT_EQ(step.place, PlaceInMonth::Middle);
    EXPECT_EQ(stepped(step, calendar, time(february), 1), time("2020-03-16T12"));
    EXPECT_EQ(stepped(step, calendar, time(february), 2), time("2020-04-16"));
    EXPECT_EQ(stepped(step, calendar, time(february), 12), time("2021-02-15"));
    EXPECT_EQ(stepped(step, calendar, time("2020-01-16T12"), -1), time("2019-12-16T12"));
  }
}

TEST(TimeStep, TheLastDayOfAMonthIsFollowedByThatOfTheNext) {
  const TimeStep step = time_step_of({at("2021-01-31T06"), at("2021-02-28T06"), at("2021-03-31T06")}, kForecastCalendar, "a");
  EXPECT_EQ(stepped(step, kForecastCalendar, at("2021-02-28T06"), 1), at("2021-03-31T06"));
  EXPECT_EQ(stepped(step, kForecastCalendar, at("2021-03-31T06"), 1), at("2021-04-30T06"));
}

TEST(TimeStep, TwoTimesOfAMonthAreAMonthApart) {
  for (const auto& [first, second, third] : {std::tuple{"2021-02-01", "2021-03-01", "2021-04-01"},
                                             {"2021-02-15", "2021-03-16T12", "2021-04-16"},
                                             {"2021-01-31T06", "2021-02-28T06", "2021-03-31T06"},
                                             {"2021-06-10T03", "2021-07-10T03", "2021-08-10T03"}}) {
    const TimeStep step = time_step_of({at(first), at(second)}, kForecastCalendar, "a");
    EXPECT_EQ(step.months, 1) << first;
    EXPECT_EQ(stepped(step, kForecastCalendar, at(second), 1), at(third)) << first;
  }
}

TEST(TimeStep, DaysThatAreNoMonthsAreCounted) {
  const TimeStep thirty = time_step_of({at("2021-01-01"), at("2021-01-31"), at("2021-03-02")}, kForecastCalendar, "a");
  EXPECT_EQ(thirty.months, 0);
  EXPECT_EQ(stepped(thirty, kForecastCalendar, at("2021-03-02"), 1), at("2021-04-01"));
  EXPECT_EQ(time_step_of({at("2021-02-03"), at("2021-03-04")}, kForecastCalendar, "a").seconds, 29 * 86400);
  EXPECT_EQ(time_step_of({at("2021-02-03"), at("2021-03-03T06")}, kForecastCalendar, "a").months, 0);
}

// Otherwise a state would be found at any time of its month.
TEST(TimeStep, NoStepsLeadToTheTimeItself) {
  const TimeStep middle = time_step_of({at("2021-01-16T12"), at("2021-02-15"), at("2021-03-16T12")}, kForecastCalendar, "a");
  EXPECT_EQ(stepped(middle, kForecastCalendar, at("2021-01-03"), 0), at("2021-01-03"));
  const TimeStep last = time_step_of({at("2021-01-31"), at("2021-02-28")}, kForecastCalendar, "a");
  EXPECT_EQ(stepped(last, kForecastCalendar, at("2021-01-03"), 0), at("2021-01-03"));
}

TEST(TimeStep, UnevenStepsAreRefused) { EXPECT_THROW(time_step_of({0, 3600, 9000}, kForecastCalendar, "a"), DataError); }

TEST(ForecastLayout, NamesAreThoseOfVariables) {
  EXPECT_THAT(variable_names({"t2m", "2t", "time", "a b", "a_b"}), ElementsAre("t2m", "v2t", "time_", "a_b", "a_b_"));
}

TEST(ForecastLayout, HasAnAxisOfMembersOnlyForSeveral) {
  ForecastLayout layout{.channels = {"t850", "u10"},
                        .units = {"K", "m s-1"},
                        .latitude = {45, -45},
                        .longitude = {0, 120, 240},
                        .height = 2,
                        .width = 3,
                        .calendar = kForecastCalendar,
                        .starts = {0, 21600},
                        .leads = {.numbers = {1, 2}},
                        .valid_times = {{3600, 7200}, {25200, 28800}},
                        .members = 1,
                        .attributes = {}};
  EXPECT_THAT(forecast_output(layout).arrays.front().shape, ElementsAre(2, 2, 2, 3));
  layout.members = 5;
  const OutputFile output = forecast_output(layout);
  EXPECT_THAT(output.arrays.front().axes, ElementsAre("number", "lead_time", "init_time", "latitude", "longitude"));
  EXPECT_EQ(std::get<std::vector<std::string>>(output.arrays[0].attributes.at("standard_name")).front(), "air_temperature");
  EXPECT_EQ(std::get<std::vector<std::string>>(output.arrays[1].attributes.at("standard_name")).front(), "eastward_wind");
  EXPECT_THAT(field_region(layout, 1, 4, 0).begin, ElementsAre(4, 0, 1, 0, 0));
  EXPECT_THAT(valid_time_values(layout), ElementsAre(1, 7, 2, 8));
}

}  // namespace
}  // namespace welkin::data
