// SPDX-License-Identifier: Apache-2.0
// Random fields on the sphere, units of ranks, and the flag --perturb.
#include "train/forecast/sphere_noise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "core/error.h"
#include "number_close.h"
#include "train/forecast/forecast_units.h"
#include "train/forecast/perturbation.h"

namespace welkin::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::Stated;
using tests::within;

constexpr int kFields = 3000;
constexpr Stated kSample{0.08, "three standard errors of a variance of 3000 fields"};

TEST(SphereNoise, HasVarianceOneAndTheCorrelationOfItsLength) {
  const SphereNoise fine({-90, -60, -30, 0, 5, 10, 15, 20, 25, 30, 35, 40, 50, 60, 90}, {0, 10, 200}, 2000);
  std::vector<float> field(45);
  double equator = 0, pole = 0, product = 0, mean = 0;
  for (uint64_t key = 0; key < kFields; ++key) {
    fine.fill(key, field);
    const auto at = [&](size_t row, size_t column) { return static_cast<double>(field[row * 3 + column]); };
    equator += at(3, 0) * at(3, 0) / kFields, pole += at(0, 0) * at(0, 0) / kFields, mean += at(3, 0) / kFields;
    product += at(3, 0) * at(3, 1) / kFields;
    EXPECT_TRUE(tests::rounds_to(at(0, 0), at(0, 2), 1, kFp32, 64));  // a pole has one value
  }
  EXPECT_TRUE(within(equator, 1, kSample));
  EXPECT_TRUE(within(pole, 1, kSample));
  EXPECT_TRUE(within(mean, 0, {0.06, "three standard errors of a mean of 3000 fields"}));
  const double distance = 6371 * 10 * std::numbers::pi / 180;
  EXPECT_TRUE(
      within(product, std::exp(-distance * distance / (2 * 2000.0 * 2000.0)), {0.1, "the sample, and a sphere for a plane"}));
}

// Rows a quarter of a degree apart show lengths that as many rows from pole to pole do not.
TEST(SphereNoise, OfARegionHasItsLength) {
  for (const auto& [length_km, row] : {std::pair(100.0, 4), std::pair(100.0, 9), std::pair(500.0, 18)}) {
    const std::vector<double> rows{54, 53.75, 54 - 0.25 * row};
    const SphereNoise noise(rows, {0}, length_km);
    double product = 0, square = 0;
    constexpr int kRegionFields = 600;
    for (uint64_t key = 0; key < kRegionFields; ++key) {
      std::vector<float> field(rows.size());
      noise.fill(key, field);
      product += static_cast<double>(field[0]) * static_cast<double>(field[2]);
      square += static_cast<double>(field[0]) * static_cast<double>(field[0]);
    }
    const double distance = 0.25 * row * 111.19;
    EXPECT_TRUE(within(square / kRegionFields, 1, {0.2, "three standard errors of a variance of 600 fields"})) << length_km;
    EXPECT_TRUE(within(product / kRegionFields, std::exp(-distance * distance / (2 * length_km * length_km)),
                       {0.15, "three standard errors of a covariance of 600 fields"}))
        << length_km << " " << row;
  }
}

TEST(SphereNoise, IsTheSameFieldOnOtherPoints) {
  std::vector<double> rows;
  for (int i = 0; i < 33; ++i) rows.push_back(90 - 180.0 * i / 32);
  std::vector<float> whole(33 * 4), part(33);
  SphereNoise(rows, {0, 90, 180, 270}, 3000).fill(7, whole);
  SphereNoise(rows, {180}, 3000).fill(7, part);
  for (size_t row = 0; row < 33; ++row) EXPECT_EQ(part[row], whole[row * 4 + 2]) << row;
}

TEST(ForecastUnits, HoldMembersOfOneStartAndModel) {
  const auto units = forecast_units(2, 5, 2, 2);
  ASSERT_EQ(units.size(), 6u);
  EXPECT_THAT(units[0].members, ElementsAre(0, 2));
  EXPECT_THAT(units[1].members, ElementsAre(4));
  EXPECT_THAT(units[2].members, ElementsAre(1, 3));
  EXPECT_EQ(units[2].model, 1);
  EXPECT_EQ(units[3].start, 1);
}

TEST(Perturbation, IsReadFromItsFlag) {
  const Perturbation sphere = parse_perturbation("sphere:amplitude=0.2,length_km=1500");
  EXPECT_EQ(sphere.kind, PerturbationKind::Sphere);
  EXPECT_EQ(sphere.amplitude, 0.2);
  EXPECT_EQ(sphere.length_km, 1500);
  EXPECT_EQ(parse_perturbation("bred:cycles=4").cycles, 4);
  EXPECT_EQ(parse_perturbation("").kind, PerturbationKind::None);
  for (const char* bad : {"gaussian:length_km=3", "lagged:amplitude=1", "sphere:amplitude=x", "sphere:amplitude", "noise",
                          "bred:cycles=0", "bred:cycles=2.7", "gaussian:amplitude=0"}) {
    try {
      parse_perturbation(bad);
      ADD_FAILURE() << bad;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(bad));
    }
  }
}

}  // namespace
}  // namespace welkin::train
