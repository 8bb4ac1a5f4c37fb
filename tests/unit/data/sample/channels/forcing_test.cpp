// SPDX-License-Identifier: Apache-2.0
// The sun against almanac values (Astronomical Almanac / NOAA solar calculator), and the other forcing channels against their
// definition.
#include "data/sample/channels/forcing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "core/error.h"
#include "number_close.h"

namespace {

using welkin::kFp32;
using welkin::kFp64;
using welkin::data::Calendar;
using welkin::data::Forcing;
using welkin::tests::close;
using welkin::tests::rounds_to;
using welkin::tests::Stated;
using welkin::tests::within;

constexpr double kDegree = std::numbers::pi / 180.0;

// Spencer's series of the day in the year: the sun of 1971, good to half a degree of the orbit in any year of the leap cycle.
constexpr Stated kSolstice{0.05, "degrees; the series at its turning points, where the day of the leap cycle hardly counts"};
constexpr Stated kEquinox{0.25, "degrees; half a day of the leap cycle, at 0.4 degrees a day"};
constexpr Stated kMinutes{0.6, "minutes; the series' equation of time, and its drift since 1971"};
constexpr Stated kDistance{1e-3, "the series, and the day of the perihelion, which moves by two days"};
constexpr Stated kSunrise{0.35, "degrees; as the equinox, and the equation of time"};
constexpr Stated kDailyMean{3e-4, "the declination moves during the day, and the sum takes minutes"};
constexpr Stated kQuarter{1e-4, "a sum over cells of a degree"};
constexpr Stated kSolarDigits{2e-3, "three digits of the almanac"};
constexpr Stated kDay360{0.3, "degrees; a day of a year of 360 stands for 1.01 days"};

welkin::data::SolarGeometry sun_at(const char* date) {
  constexpr auto calendar = Calendar::ProlepticGregorian;
  return welkin::data::solar_geometry(calendar, welkin::data::parse_date(date, calendar));
}

TEST(Forcing, DeclinationAtSolsticesAndEquinox) {
  EXPECT_TRUE(within(sun_at("2019-06-21T15:54").declination / kDegree, 23.435, kSolstice));
  EXPECT_TRUE(within(sun_at("2019-12-22T04:19").declination / kDegree, -23.435, kSolstice));
  EXPECT_TRUE(within(sun_at("2019-03-20T21:58").declination / kDegree, 0.0, kEquinox));
  EXPECT_TRUE(within(sun_at("2019-09-23T07:50").declination / kDegree, 0.0, kEquinox));
}

TEST(Forcing, EquationOfTimeAtItsExtremes) {
  const auto minutes = [](const char* date) { return sun_at(date).equation_of_time / kDegree * 4.0; };
  EXPECT_TRUE(within(minutes("2019-02-11T12:00"), -14.2, kMinutes));
  EXPECT_TRUE(within(minutes("2019-05-14T12:00"), 3.65, kMinutes));
  EXPECT_TRUE(within(minutes("2019-07-26T12:00"), -6.55, kMinutes));
  EXPECT_TRUE(within(minutes("2019-11-03T12:00"), 16.4, kMinutes));
}

TEST(Forcing, DistanceAtPerihelionAndAphelion) {
  EXPECT_TRUE(within(sun_at("2019-01-03T05:20").distance_factor, 1.0 / (0.98330 * 0.98330), kDistance));
  EXPECT_TRUE(within(sun_at("2019-07-04T22:11").distance_factor, 1.0 / (1.01675 * 1.01675), kDistance));
}

TEST(Forcing, NoonHeightAndSunriseInGreenwich) {
  // Transit at 12:02 UTC with the sun at 61.96 degrees; sunrise on 20 March at 06:05 UTC with the true sun 0.83 degrees below the
  // horizon.
  const double latitude = 51.4779 * kDegree;
  EXPECT_TRUE(within(std::asin(sun_at("2019-06-21T12:02").cos_zenith(latitude, 0.0)) / kDegree, 61.96, kSolstice));
  EXPECT_TRUE(within(std::asin(sun_at("2019-03-20T06:05").cos_zenith(latitude, 0.0)) / kDegree, -0.83, kSunrise));
}

TEST(Forcing, EastIsEarlier) {
  const auto sun = sun_at("2019-03-20T06:00");
  EXPECT_GT(sun.cos_zenith(0.0, 90 * kDegree), 0.99);    // noon in Bangladesh
  EXPECT_LT(sun.cos_zenith(0.0, -90 * kDegree), -0.99);  // midnight in Guatemala
}

TEST(Forcing, DailyMeanIsTheMeanOfTheDay) {
  constexpr auto calendar = Calendar::ProlepticGregorian;
  const int64_t start = welkin::data::parse_date("2019-05-10", calendar);
  for (const double latitude : {-85.0, -40.0, 0.0, 52.0, 80.0}) {
    double sum = 0;
    for (int minute = 0; minute < 1440; ++minute) {
      const auto sun = welkin::data::solar_geometry(calendar, start + minute * 60);
      sum += sun.distance_factor * std::max(0.0, sun.cos_zenith(latitude * kDegree, 0.3));
    }
    const auto noon = welkin::data::solar_geometry(calendar, start + 43200);
    EXPECT_TRUE(within(noon.daily_mean(latitude * kDegree), sum / 1440, kDailyMean)) << latitude;
  }
}

TEST(Forcing, MeanOverTheSphereIsAQuarter) {
  const auto sun = sun_at("2019-08-05T03:00");
  double sum = 0, weight = 0;
  for (double latitude = -89.5; latitude < 90; latitude += 1) {
    for (double longitude = 0.5; longitude < 360; longitude += 1) {
      sum += std::cos(latitude * kDegree) * std::max(0.0, sun.cos_zenith(latitude * kDegree, longitude * kDegree));
      weight += std::cos(latitude * kDegree);
    }
  }
  EXPECT_TRUE(within(sum / weight, 0.25, kQuarter));
}

TEST(Forcing, ChannelsOnAGrid) {
  const std::vector<double> latitude{90.0, 0.0}, longitude{0.0, 90.0, 180.0};
  const int64_t noon = welkin::data::parse_date("2019-07-02T12:00", Calendar::NoLeap);  // the middle of a year of 365 days
  std::vector<float> out(4 * 6);
  fill_forcing(Forcing::Calendar, Calendar::NoLeap, noon, latitude, longitude, out);
  EXPECT_TRUE(rounds_to(out[0], 0.0, 1, kFp32, 4));    // sine of the year
  EXPECT_TRUE(rounds_to(out[6], -1.0, 1, kFp32, 4));   // cosine of the year
  EXPECT_TRUE(rounds_to(out[12], 0.0, 1, kFp32, 4));   // sine of the day
  EXPECT_TRUE(rounds_to(out[23], -1.0, 1, kFp32, 4));  // cosine of the day, last point
  out.resize(3 * 6);
  fill_forcing(Forcing::Coordinates, Calendar::NoLeap, noon, latitude, longitude, out);
  EXPECT_TRUE(rounds_to(out[0], 1.0, 1, kFp32, 4));        // the pole
  EXPECT_TRUE(rounds_to(out[3], 0.0, 1, kFp32, 4));        // the equator
  EXPECT_TRUE(rounds_to(out[6 + 4], 1.0, 1, kFp32, 4));    // 90 E
  EXPECT_TRUE(rounds_to(out[12 + 5], -1.0, 1, kFp32, 4));  // 180
  out.resize(6);
  fill_forcing(Forcing::Solar, Calendar::NoLeap, noon, latitude, longitude, out);
  EXPECT_TRUE(within(out[0], 0.967 * std::sin(23.05 * kDegree), kSolarDigits));
  EXPECT_TRUE(within(out[3], 0.967 * std::cos(23.05 * kDegree), kSolarDigits));
  EXPECT_EQ(out[5], 0.0f);  // midnight
}

TEST(Forcing, Day360CalendarHasItsOwnYear) {
  const int64_t middle = welkin::data::parse_date("2019-07-01", Calendar::Day360);
  EXPECT_TRUE(close(welkin::data::day_of_year(Calendar::Day360, middle).day, 180.0, kFp64, 4));
  EXPECT_TRUE(within(welkin::data::solar_geometry(Calendar::Day360, middle).declination / kDegree, 23.1, kDay360));
}

TEST(Forcing, ARegionIsAPartOfTheWhole) {
  const welkin::data::ForcingChannels channels({"coordinates", "calendar", "solar"}, {60, 50, 40, 30}, {0, 10, 20, 30, 40},
                                               Calendar::NoLeap);
  ASSERT_EQ(channels.count(), 8);
  EXPECT_EQ(channels.names().front(), "place_z");
  EXPECT_EQ(channels.names().back(), "solar");
  const int64_t time = welkin::data::parse_date("2001-05-05T10:30", Calendar::NoLeap);
  std::vector<float> whole(8 * 20), part(8 * 6);
  channels.fill(time, {.begin = {0, 0, 0}, .extent = {4, 5, 1}}, whole);
  channels.fill(time, {.begin = {1, 2, 0}, .extent = {2, 3, 1}}, part);
  for (size_t c = 0; c < 8; ++c) {
    for (size_t j = 0; j < 2; ++j) {
      for (size_t i = 0; i < 3; ++i) EXPECT_EQ(part[(c * 2 + j) * 3 + i], whole[(c * 4 + j + 1) * 5 + i + 2]) << c;
    }
  }
}

TEST(Forcing, OnlyTheCalendarDoesWithoutCoordinates) {
  const welkin::data::ForcingChannels calendar({"calendar"}, {}, {}, Calendar::NoLeap);
  std::vector<float> out(4 * 6);
  calendar.fill(0, {.begin = {7, 7, 0}, .extent = {2, 3, 1}}, out);
  EXPECT_EQ(out[6], 1.0f);  // cosine of the year on 1 January
  EXPECT_THROW(welkin::data::ForcingChannels({"solar"}, {}, {}, Calendar::NoLeap), welkin::DataError);
}

TEST(Forcing, UnknownNameSaysTheKnownOnes) {
  try {
    welkin::data::parse_forcing("sun");
    FAIL();
  } catch (const welkin::ConfigError& error) {
    EXPECT_STREQ(error.what(), "[data] unknown forcing: forcing=sun. Choose among solar, solar_daily, calendar, coordinates.");
  }
}

}  // namespace
