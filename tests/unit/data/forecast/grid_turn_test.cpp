// SPDX-License-Identifier: Apache-2.0
// Rows and columns of other files, laid as the data have them.
#include "data/forecast/grid_turn.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace welkin::data {
namespace {

TEST(GridTurn, TurnsRowsAndColumnsOntoAnotherGrid) {
  const GridAxes to{.latitude = {60, 0, -60}, .longitude = {0, 90, 180, 270}};
  const auto turn = GridTurn::onto(to, {.latitude = {-60, 0, 60}, .longitude = {-180, -90, 0, 90}});
  ASSERT_TRUE(turn.has_value());
  std::vector<float> fields = {8, 9, 6, 7, 4, 5, 2, 3, 0, 1, -2, -1};
  turn->apply(fields, 3, 4);
  EXPECT_EQ(fields, (std::vector<float>{-2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_FALSE(GridTurn::onto(to, {.latitude = {-61, 0, 60}, .longitude = to.longitude}).has_value());
  EXPECT_FALSE(GridTurn::onto(to, {.latitude = to.latitude, .longitude = {1, 91, 181, 271}}).has_value());
}

// Data without latitudes begin in the north, so that a file that begins in the south is turned.
TEST(GridTurn, AxesThatNoFileNamesAreAssumed) {
  const GridAxes global = assumed_axes({.latitude = {-60, 0, 60}, .longitude = {-180, -90, 0, 90}});
  EXPECT_EQ(global.latitude, (std::vector<double>{60, 0, -60}));
  EXPECT_EQ(global.longitude, (std::vector<double>{0, 90, 180, 270}));
  const std::vector<double> region{-10, 0, 10};
  EXPECT_EQ(assumed_axes({.latitude = {}, .longitude = region}).longitude, region) << "no whole circle";
}

}  // namespace
}  // namespace welkin::data
