// SPDX-License-Identifier: Apache-2.0
// Leads by the step of the data, and as files of others number them.
#include "data/forecast/forecast_leads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/error.h"
#include "data/formats/memory_array.h"

namespace welkin::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Times = std::vector<std::vector<int64_t>>;

constexpr int64_t kLeadHour = 3600;

ArrayFile leads_in(const std::string& unit, std::vector<double> numbers) {
  ArrayFacts facts{.source = "leads.nc", .name = "lead_time", .shape = {}, .chunk = {}, .codecs = {}, .axes = {}, .packing = {}};
  facts.shape = {static_cast<int64_t>(numbers.size())};
  ArrayFile file{.path = "leads.nc", .format = "netCDF", .arrays = {}, .not_numbers = {}, .attributes = {}};
  file.arrays["lead_time"] = make_memory_array(std::move(facts), std::move(numbers));
  if (!unit.empty()) file.attributes["lead_time"]["units"] = std::vector<std::string>{unit};
  return file;
}

ForecastLeads leads_from(const std::string& unit, std::vector<double> numbers, const Times& valid_times = {}) {
  return read_leads(leads_in(unit, std::move(numbers)), "lead_time", {0, 100 * kLeadHour}, valid_times);
}

TEST(ForecastLeads, AreHoursOrStepsByTheStepOfTheData) {
  EXPECT_THAT(leads_of({.seconds = 6 * kLeadHour}, 2, 3).numbers, ElementsAre(12, 24, 36));
  EXPECT_EQ(leads_of({.seconds = 6 * kLeadHour}, 2, 3).text(0), "12 h");
  const ForecastLeads months = leads_of({.months = 1}, 3, 2);
  EXPECT_THAT(months.numbers, ElementsAre(1, 2));
  EXPECT_FALSE(months.in_hours);
  EXPECT_EQ(months.text(0), "1 step");
  EXPECT_EQ(months.text(1), "2 steps");
}

TEST(ForecastLeads, EveryUnitWithALengthIsRead) {
  for (const auto& [seconds, units] :
       std::vector<std::pair<double, std::vector<std::string>>>{{1e-9, {"nanoseconds", "nanosecond", "ns"}},
                                                                {1e-6, {"microseconds", "microsecond", "us"}},
                                                                {1e-3, {"milliseconds", "millisecond", "ms"}},
                                                                {1, {"seconds", "second", "secs", "sec", "s"}},
                                                                {60, {"minutes", "minute", "mins", "min"}},
                                                                {3600, {"hours", "hour", "hrs", "hr", "h", "Hours"}},
                                                                {86400, {"days", "day", "d"}},
                                                                {604800, {"weeks", "week"}}}) {
    for (const std::string& unit : units) {
      const ForecastLeads leads = leads_from(unit, {6 * 3600 / seconds, 168 * 3600 / seconds});
      EXPECT_TRUE(leads.in_hours);
      EXPECT_THAT(leads.numbers, ElementsAre(6, 168)) << unit;
    }
  }
}

TEST(ForecastLeads, StepsKeepTheirNumbers) {
  const Times months = {{31 * 24 * kLeadHour, 59 * 24 * kLeadHour}, {128 * 24 * kLeadHour, 159 * 24 * kLeadHour}};
  for (const std::string unit : {"1", "", "months"}) {
    const ForecastLeads leads = leads_from(unit, {2, 3}, months);
    EXPECT_FALSE(leads.in_hours) << unit;
    EXPECT_THAT(leads.numbers, ElementsAre(2, 3)) << unit;
  }
  const Times hours = {{6 * kLeadHour, 12 * kLeadHour}, {106 * kLeadHour, 112 * kLeadHour}};
  EXPECT_FALSE(leads_from("1", {1, 2}, hours).in_hours);
  const ForecastLeads without_unit = leads_from("", {1, 2}, hours);
  EXPECT_TRUE(without_unit.in_hours);
  EXPECT_THAT(without_unit.numbers, ElementsAre(6, 12));
}

TEST(ForecastLeads, WhatIsNoLengthIsRefused) {
  const auto refusal = [](const std::string& unit, double number) -> std::string {
    try {
      leads_from(unit, {number});
    } catch (const DataError& error) {
      return error.what();
    }
    return "read";
  };
  for (const std::string unit : {"1", "", "months", "Ms", "H"}) {
    EXPECT_THAT(refusal(unit, 6),
                HasSubstr("the leads have no unit that has a length: path=leads.nc, dataset=lead_time, units=" + unit));
    EXPECT_THAT(refusal(unit, 6), HasSubstr("or say the times of all fields in an array valid_time"));
  }
  for (const double number : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 1e300}) {
    EXPECT_THAT(refusal("hours", number), HasSubstr("a lead is no length of time: path=leads.nc, dataset=lead_time, lead="));
  }
}

}  // namespace
}  // namespace welkin::data
