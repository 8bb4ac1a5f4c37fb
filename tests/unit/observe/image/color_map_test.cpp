// SPDX-License-Identifier: Apache-2.0
#include "observe/image/color_map.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "number_close.h"

namespace welkin::observe::image {
namespace {

void expect_near(Color a, Color b, int most) {
  const tests::Stated levels{static_cast<double>(most), "levels of 255"};
  EXPECT_TRUE(tests::within(a.red, b.red, levels));
  EXPECT_TRUE(tests::within(a.green, b.green, levels));
  EXPECT_TRUE(tests::within(a.blue, b.blue, levels));
}

// Entries 0, 64, 128, 192 and 255 of the published tables.
TEST(ColorMap, TurboAndViridisAgreeWithTheirTables) {
  expect_near(color_at(ColorMap::Turbo, 0), {48, 18, 59}, 0);
  expect_near(color_at(ColorMap::Turbo, 64 / 255.0), {40, 187, 236}, 2);
  expect_near(color_at(ColorMap::Turbo, 128 / 255.0), {164, 252, 60}, 2);
  expect_near(color_at(ColorMap::Turbo, 192 / 255.0), {251, 126, 33}, 2);
  expect_near(color_at(ColorMap::Turbo, 1), {122, 4, 3}, 0);
  expect_near(color_at(ColorMap::Viridis, 0), {68, 1, 84}, 0);
  expect_near(color_at(ColorMap::Viridis, 128 / 255.0), {33, 145, 140}, 3);
  expect_near(color_at(ColorMap::Viridis, 1), {253, 231, 37}, 0);
}

TEST(ColorMap, DivergingIsEvenAboutAWhiteMiddle) {
  const Color middle = color_at(ColorMap::Diverging, 0.5);
  EXPECT_GT(std::min({middle.red, middle.green, middle.blue}), 240);
  EXPECT_GT(color_at(ColorMap::Diverging, 0.1).blue, 2 * color_at(ColorMap::Diverging, 0.1).red);
  EXPECT_GT(color_at(ColorMap::Diverging, 0.9).red, 2 * color_at(ColorMap::Diverging, 0.9).blue);
}

TEST(ColorMap, OutsideIsClampedAndNoValueIsGrey) {
  EXPECT_EQ(color_at(ColorMap::Turbo, -3), color_at(ColorMap::Turbo, 0));
  EXPECT_EQ(color_at(ColorMap::Viridis, std::numeric_limits<double>::infinity()), color_at(ColorMap::Viridis, 1));
  EXPECT_EQ(color_at(ColorMap::Turbo, std::nan("")), kMissingGray);
}

TEST(ColorScale, SpansTheFiniteValues) {
  const std::vector<float> values{1, std::nanf(""), -3, std::numeric_limits<float>::infinity()};
  const ColorScale plain = scale_for(ColorMap::Turbo, values);
  EXPECT_EQ(plain.low, -3);
  EXPECT_EQ(plain.high, 1);
  EXPECT_EQ(plain(1), color_at(ColorMap::Turbo, 1));
  EXPECT_EQ(scale_for(ColorMap::Diverging, values).high, 3);
  EXPECT_EQ(scale_for(ColorMap::Turbo, values, 0.0).low, 0);
}

TEST(ColorScale, WidensARangeWithoutWidth) {
  const ColorScale constant = scale_for(ColorMap::Turbo, std::vector<float>{5, 5});
  EXPECT_LT(constant.low, 5);
  EXPECT_GT(constant.high, 5);
  EXPECT_LT(scale_for(ColorMap::Viridis, {}).low, scale_for(ColorMap::Viridis, {}).high);
}

}  // namespace
}  // namespace welkin::observe::image
