// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/regrid.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "core/error.h"
#include "data/ingest/feed_reader.h"
#include "ingest_fake_component.h"
#include "number_close.h"

namespace welkin::data::ingest {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using welkin::tests::Stated;
using welkin::tests::within;

// Rows from pole to pole, as ERA5 has them.
Grid with_poles(int64_t rows, int64_t columns) {
  Grid grid;
  for (int64_t i = 0; i < rows; ++i) grid.latitude.push_back(90 - 180.0 * static_cast<double>(i) / static_cast<double>(rows - 1));
  for (int64_t j = 0; j < columns; ++j) grid.longitude.push_back(360.0 * static_cast<double>(j) / static_cast<double>(columns));
  return grid;
}

// Rows at the arcsines of the roots of a Legendre polynomial, by Newton's method. The caps beyond the last rows are more than
// half a step wide.
Grid gaussian_grid(int64_t rows, int64_t columns) {
  Grid grid;
  const auto degree = static_cast<double>(rows);
  for (int64_t i = 0; i < rows; ++i) {
    double root = std::cos(std::numbers::pi * (static_cast<double>(i) + 0.75) / (degree + 0.5));
    for (int iteration = 0; iteration < 20; ++iteration) {
      double before = 1, value = root;
      for (int64_t k = 2; k <= rows; ++k) {
        const auto order = static_cast<double>(k);
        const double next = ((2 * order - 1) * root * value - (order - 1) * before) / order;
        before = value, value = next;
      }
      root -= value * (root * root - 1) / (degree * (root * value - before));
    }
    grid.latitude.push_back(std::asin(root) * 180 / std::numbers::pi);
  }
  for (int64_t j = 0; j < columns; ++j) grid.longitude.push_back(360.0 * static_cast<double>(j) / static_cast<double>(columns));
  return grid;
}

// Area of a row's cells over that of the globe: exact, from the bounds halfway between rows.
double row_area(const Grid& grid, size_t row) {
  const auto& lat = grid.latitude;
  const double north = row == 0 ? 90 : (lat[row - 1] + lat[row]) / 2,
               south = row + 1 == lat.size() ? -90 : (lat[row] + lat[row + 1]) / 2;
  const auto sine = [](double degrees) { return std::sin(degrees * std::numbers::pi / 180); };
  return (sine(north) - sine(south)) / 2 / static_cast<double>(grid.longitude.size());
}

double global_mean(const Grid& grid, const std::vector<float>& values) {
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += row_area(grid, i / grid.longitude.size()) * values[i];
  return sum;
}

std::vector<float> random_field(const Grid& grid) {
  std::mt19937 generator(3);
  std::normal_distribution<float> normal(280, 20);
  std::vector<float> values(static_cast<size_t>(grid.num_points()));
  for (float& value : values) value = normal(generator);
  return values;
}

std::vector<float> regridded(const Grid& from, const Grid& to, RegridMethod method, const std::vector<float>& values) {
  std::vector<float> out(static_cast<size_t>(to.num_points()));
  Regridder(from, to, method).apply(values, out);
  return out;
}

constexpr Stated kSums{1e-6, "what float32 keeps of a sum, relative"};

TEST(Regrid, ConservativeKeepsAreaWeightedSums) {
  for (const Grid& from : {with_poles(181, 360), with_poles(73, 144), equiangular_grid(90, 180), gaussian_grid(64, 128)}) {
    const std::vector<float> values = random_field(from);
    for (const Grid& to : {equiangular_grid(32, 64), equiangular_grid(60, 121), with_poles(37, 72)}) {
      const auto out = regridded(from, to, RegridMethod::Conservative, values);
      EXPECT_TRUE(within(global_mean(to, out) / global_mean(from, values), 1.0, kSums));
    }
  }
}

// Ice on the southernmost row alone: the pole's cap is part of it.
TEST(Regrid, ConservativeKeepsWhatLiesAtThePolesOfAGaussianGrid) {
  const Grid from = gaussian_grid(24, 48), to = equiangular_grid(32, 64);
  std::vector<float> values(static_cast<size_t>(from.num_points()), 0.0f);
  std::fill(values.end() - 48, values.end(), 1.0f);
  const auto out = regridded(from, to, RegridMethod::Conservative, values);
  EXPECT_TRUE(within(global_mean(to, out) / global_mean(from, values), 1.0, kSums));
  EXPECT_EQ(out.back(), 1.0f);
}

// Four cells in one, whose corners meet: the mean by area.
TEST(Regrid, ConservativeOfNestedCellsIsTheirMeanByArea) {
  const Grid from = equiangular_grid(4, 8), to = equiangular_grid(2, 4);
  Grid shifted = to;  // cells of the target begin where those of the source do
  for (double& longitude : shifted.longitude) longitude += 22.5;
  const std::vector<float> values = random_field(from);
  const auto out = regridded(from, shifted, RegridMethod::Conservative, values);
  const double north = row_area(from, 0), south = row_area(from, 1);
  const double wanted = (north * (values[2] + values[3]) + south * (values[10] + values[11])) / (2 * (north + south));
  EXPECT_TRUE(welkin::tests::close(out[1], wanted, kFp32, 4));
}

TEST(Regrid, BilinearIsExactForLinesAlongAxes) {
  const Grid from = with_poles(37, 72), to = equiangular_grid(16, 48);
  std::vector<float> values;
  for (const double latitude : from.latitude) {
    for (size_t j = 0; j < from.longitude.size(); ++j) values.push_back(static_cast<float>(2 * latitude + 1));
  }
  const auto out = regridded(from, to, RegridMethod::Bilinear, values);
  for (size_t i = 0; i < out.size(); ++i) {
    EXPECT_TRUE(welkin::tests::close(out[i], 2 * to.latitude[i / 48] + 1, kFp32, 256));
  }
}

TEST(Regrid, BilinearGoesAround) {
  Grid from{.latitude = {10, -10}, .longitude = {0, 90, 180, 270}}, to{.latitude = {0}, .longitude = {-45, 315, 45}};
  const auto out = regridded(from, to, RegridMethod::Bilinear, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_THAT(out, testing::ElementsAre(3.5f, 3.5f, 2.5f));  // between 270 and 0 E, and 0 and 90 E
}

TEST(Regrid, PointsWithoutAValueCountNotAtAll) {
  const float hole = std::numeric_limits<float>::quiet_NaN();
  const Grid from{.latitude = {67.5, 22.5, -22.5, -67.5}, .longitude = {0, 90, 180, 270}};
  const Grid to{.latitude = {45, -45}, .longitude = {45, 225}};
  std::vector<float> values(16, 4.0f);
  values[0] = hole;                                      // a small part of the north-west
  for (const size_t i : {10, 11, 14}) values[i] = hole;  // most of the south-east
  const auto out = regridded(from, to, RegridMethod::Conservative, values);
  EXPECT_EQ(out[0], 4.0f);
  EXPECT_EQ(out[2], 4.0f);
  EXPECT_TRUE(std::isnan(out[3]));
}

TEST(Regrid, BeyondTheDataIsRefused) {
  const Grid region{.latitude = {60, 50, 40}, .longitude = {0, 10, 20}};
  EXPECT_THAT([&] { Regridder(region, equiangular_grid(8, 16), RegridMethod::Conservative); },
              ThrowsMessage<DataError>(HasSubstr("the new grid goes beyond the data: latitude 35 to 65")));
}

// The mean of 350 and 10 degrees is 0, and not 180: sine and cosine are regridded, not the angle.
TEST(Regrid, SineAndCosineAreTakenBefore) {
  fake::Workspace place("ingest-angles");
  fake::File file;
  file.variables = {fake::variable("wd", "degrees")};
  file.grids = {{.latitude = {67.5, 22.5, -22.5, -67.5}, .longitude = {0, 45, 90, 135, 180, 225, 270, 315}}};
  file.planes = {{0, 0, 0, 0, 0}};
  file.value = [](const welkin_ingest_plane&, int64_t, int64_t column) { return column % 2 == 0 ? 350.0F : 10.0F; };
  place.add("a.grib", file);
  const Component component(fake::api());
  const Inventory inventory = take_inventory(component, find_inputs({place.in()}, Subfolders::Skip).files);
  const std::vector<Channel> channels{{"wd_sin", "1", 0, Derivation::Sine},
                                      {"wd_cos", "1", 0, Derivation::Cosine},
                                      {"wd", "degrees", 0, Derivation::Value},
                                      {"mask", "1", 0, Derivation::Mask}};
  for (const RegridMethod method : {RegridMethod::Conservative, RegridMethod::Bilinear}) {
    Grid to = equiangular_grid(2, 4);
    for (double& longitude : to.longitude) longitude += 22.5;  // between two points of the input
    FeedReader reader(component, inventory, to, method, {.height = 2, .width = 4});
    std::vector<float> values(4 * 8);
    reader.read(std::vector<int64_t>{0}, channels, values);
    const double cosine = std::cos(10 * std::numbers::pi / 180);
    for (size_t i = 0; i < 8; ++i) {
      EXPECT_TRUE(welkin::tests::close(values[i] + 1, 1, kFp32, 4));
      EXPECT_TRUE(welkin::tests::close(values[8 + i], cosine, kFp32, 4));
      EXPECT_TRUE(welkin::tests::close(values[16 + i], 180, kFp32, 4));
      EXPECT_EQ(values[24 + i], 1.0F);
    }
  }
}

}  // namespace
}  // namespace welkin::data::ingest
