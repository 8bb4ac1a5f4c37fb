// SPDX-License-Identifier: Apache-2.0
// The files of simulated weather, and what makes them weather: seasons, days, memory of the present.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "data/datasets/field_file.h"
#include "data/formats/npy_file.h"
#include "data/simulate/globe/atmosphere.h"
#include "data/simulate/globe/climate.h"
#include "data/simulate/globe/weather.h"
#include "number_close.h"

namespace welkin::data::simulate {
namespace {

using welkin::tests::close;
using welkin::tests::rounds_to;
using welkin::tests::within;

class SimulateWeather : public testing::Test {
 protected:
  SimulateWeather() {
    root_ = std::filesystem::temp_directory_path() / ("welkin_simulate_weather_" + std::to_string(::getpid()));
    std::filesystem::remove_all(root_);
  }
  ~SimulateWeather() override { std::filesystem::remove_all(root_); }

  WeatherOptions small(const std::string& folder) const {
    WeatherOptions options;
    options.out = root_ / folder;
    options.steps = 12;
    options.height = 17;
    options.width = 32;
    options.truncation = 10;
    options.spin_up_days = 10;
    return options;
  }
  static bool simulate(const WeatherOptions& options, int threads = 2) {
    ThreadPool pool({.num_threads = threads});
    return simulate_weather(options, pool, [](std::string_view, int64_t, int64_t) {});
  }
  std::vector<float> step(const std::string& file, int64_t time) const {
    const FieldFile fields(root_ / file);
    std::vector<float> values(static_cast<size_t>(20 * 17 * 32));
    fields.read(time, {0, 20}, {.row = 0, .column = 0, .height = 17, .width = 32}, values);
    return values;
  }

  std::filesystem::path root_;
};

TEST_F(SimulateWeather, WritesTheTreeThatTheTutorialsName) {
  ASSERT_TRUE(simulate(small("a")));
  for (const char* name : {"train/1990.h5", "train/1991.h5", "valid/1992.h5", "test/1993.h5"}) {
    const FieldFile file(root_ / "a" / name);
    EXPECT_EQ(file.facts().steps, 12);
    EXPECT_EQ(file.facts().channels, 20);
    EXPECT_EQ(file.facts().channel_names.at(0), "u10m");
    EXPECT_EQ(file.facts().channel_names.at(2), "t2m");
    EXPECT_EQ(file.facts().units.at(2), "K");
    EXPECT_EQ(file.facts().latitude.front(), 90.0);
    EXPECT_EQ(file.facts().latitude.back(), -90.0);
    EXPECT_EQ(file.facts().longitude.at(1), 360.0 / 32.0);
    EXPECT_EQ(file.facts().time.at(1) - file.facts().time.at(0), 21600);
  }
  EXPECT_EQ(FieldFile(root_ / "a/train/1990.h5").facts().time.at(0), 631152000);  // 1990-01-01T00:00Z
  EXPECT_FALSE(simulate(small("a")));                                             // there already
}

TEST_F(SimulateWeather, StatisticsAreThoseOfTheTrainingYears) {
  ASSERT_TRUE(simulate(small("a")));
  const std::vector<double> means = NpyFile(root_ / "a/stats/global_means.npy").read_doubles(20);
  const std::vector<double> deviations = NpyFile(root_ / "a/stats/global_stds.npy").read_doubles(20);
  const NpyFile time_means(root_ / "a/stats/time_means.npy");
  EXPECT_EQ(time_means.header().shape, (std::vector<int64_t>{1, 20, 17, 32}));
  const std::vector<double> maps = time_means.read_doubles(1 << 20);
  constexpr size_t kPoints = 17 * 32;
  for (const size_t c : {0u, 2u, 14u, 19u}) {
    double sum = 0.0, squares = 0.0, map = 0.0;
    for (const char* name : {"a/train/1990.h5", "a/train/1991.h5"}) {
      for (int64_t t = 0; t < 12; ++t) {
        const std::vector<float> values = step(name, t);
        for (size_t i = 0; i < kPoints; ++i) sum += values[c * kPoints + i], squares += std::pow(values[c * kPoints + i], 2);
        map += values[c * kPoints + 100];
      }
    }
    const double count = 24.0 * kPoints, mean = sum / count;
    EXPECT_TRUE(rounds_to(means[c], mean, std::abs(mean) + 1, kFp32, 16));
    // squares / count - mean^2 cancels: roundings of the squares, each over twice the deviation.
    const double deviation = std::sqrt(squares / count - mean * mean);
    EXPECT_TRUE(rounds_to(deviations[c], deviation, deviation, kFp32,
                          4 + static_cast<int64_t>(squares / count / (deviation * deviation))));
    EXPECT_TRUE(rounds_to(maps[c * kPoints + 100], map / 24.0, std::abs(map) + 1, kFp32, 16));
  }
}

TEST_F(SimulateWeather, ThreadsDoNotChangeAValueAndSeedsAndYearsDo) {
  ASSERT_TRUE(simulate(small("one"), 1));
  ASSERT_TRUE(simulate(small("four"), 4));
  WeatherOptions other = small("other");
  other.seed = 2;
  ASSERT_TRUE(simulate(other));
  for (const char* name : {"train/1990.h5", "test/1993.h5"})
    EXPECT_EQ(step(std::string("one/") + name, 11), step(std::string("four/") + name, 11));
  for (const char* name : {"global_means.npy", "global_stds.npy", "time_means.npy"}) {
    EXPECT_EQ(read_file(root_ / "one/stats" / name, 1 << 24), read_file(root_ / "four/stats" / name, 1 << 24));
  }
  EXPECT_NE(step("one/train/1990.h5", 11), step("one/train/1991.h5", 11));
  EXPECT_NE(step("one/train/1990.h5", 11), step("other/train/1990.h5", 11));
}

TEST_F(SimulateWeather, FieldsAreFiniteAndPlausible) {
  ASSERT_TRUE(simulate(small("a")));
  const std::vector<float> values = step("a/train/1991.h5", 11);
  const auto range = [&](size_t channel, float low, float high) {
    for (size_t i = channel * 17 * 32; i < (channel + 1) * 17 * 32; ++i) {
      ASSERT_TRUE(values[i] >= low && values[i] <= high) << "channel " << channel << ": " << values[i];
    }
  };
  for (const size_t wind : {0, 1, 6, 7, 9, 10, 12, 13}) range(wind, -120.0f, 120.0f);
  for (const size_t temperature : {2, 5, 15}) range(temperature, 180.0f, 330.0f);
  range(3, 7e4f, 1.1e5f);
  range(4, 9.3e4f, 1.08e5f);
  for (const size_t humidity : {17, 18}) range(humidity, 0.0f, 100.0f);
  range(19, 0.0f, 90.0f);
  // One value at the pole for scalars, whatever the longitude.
  for (size_t i = 1; i < 32; ++i) EXPECT_TRUE(close(values[2 * 17 * 32 + i], values[2 * 17 * 32], kFp32, 32));
}

TEST_F(SimulateWeather, SaysWhatIsWrong) {
  WeatherOptions options = small("wrong");
  options.years = 0;
  options.truncation = 40;
  try {
    simulate(options);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("[simulate weather] years=0"));
    EXPECT_THAT(error.what(), testing::HasSubstr("width=32, truncation=40 (width must exceed twice the truncation)"));
  }
  WeatherOptions cramped = small("cramped");
  cramped.max_memory_gib = 1e-5;
  EXPECT_THROW(simulate(cramped), ConfigError);
}

constexpr welkin::tests::Stated kSunDay{1e-3, "a day of the season"};

TEST(SimulateClimate, TheSunFollowsHourAndSeason) {
  const double day = 86400.0;
  EXPECT_TRUE(within(Sun(80.0 * day + 0.5 * day).height(0.0, 1.0, 0.0), 1.0, kSunDay));  // equinox, noon on the equator
  EXPECT_EQ(Sun(80.0 * day).height(0.0, 1.0, 0.0), 0.0);                                 // midnight
  EXPECT_TRUE(within(Sun(80.0 * day).height(0.0, 1.0, M_PI), 1.0, kSunDay));             // noon on the other side
  EXPECT_TRUE(
      within(Sun(171.3 * day).height(1.0, 0.0, 0.0), std::sin(23.44 * M_PI / 180.0), kSunDay));  // midsummer at the north pole
  EXPECT_EQ(Sun(171.3 * day + 0.5 * day).height(-1.0, 0.0, 0.0), 0.0);
}

TEST(SimulateClimate, SaturationHumidityIsThatOfTheTables) {
  EXPECT_TRUE(
      within(saturation_humidity(273.15, 101325.0), 3.76e-3, {2e-5, "three digits of the tables, and the formula's 0.3 %"}));
  EXPECT_TRUE(
      within(saturation_humidity(293.15, 101325.0), 14.5e-3, {2e-4, "three digits of the tables, and the formula's 0.3 %"}));
}

// Two runs that start almost alike: the weather of a fortnight later differs, the total mass does not.
TEST(SimulateAtmosphere, KeepsItsMassUnderForcingAndStaysFinite) {
  const ShallowWater model(atmosphere_options(15));
  const Planet planet = make_planet(model.transform(), 4);
  Atmosphere air(15, planet, 8, 0.0);
  const auto mass = [&] { return air.water().mean_depth(0) + air.water().mean_depth(1); };
  const double before = mass();
  for (int i = 0; i < 80; ++i) air.advance_six_hours();
  EXPECT_TRUE(rounds_to(mass() / before, 1.0, 1, kFp64, 80 * 100));
  EXPECT_TRUE(std::isfinite(air.water().energy()));
  EXPECT_EQ(air.second(), 80 * 21600.0);
}

}  // namespace
}  // namespace welkin::data::simulate
