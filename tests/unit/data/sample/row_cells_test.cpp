// SPDX-License-Identifier: Apache-2.0
#include "data/sample/row_cells.h"

#include <gmock/gmock.h>

namespace welkin::data {
namespace {

using ::testing::ElementsAre;

TEST(RowBorders, LieHalfwayBetweenRowsInTheirOrder) {
  EXPECT_THAT(row_borders({60, 50, 40}), ElementsAre(65, 55, 45, 35));
  EXPECT_THAT(row_borders({40, 50, 60}), ElementsAre(35, 45, 55, 65));
}

TEST(RowBorders, EndAtThePolesWhereRowsDo) {
  EXPECT_THAT(row_borders({90, 0, -90}), ElementsAre(90, 45, -45, -90));
  EXPECT_THAT(row_borders({67.5, 22.5, -22.5, -67.5}), ElementsAre(90, 45, 0, -45, -90));
}

// Nearer to the pole than to the next row, and further away than half of a step: of a Gaussian grid.
TEST(RowBorders, TheLastRowHasThePolesCap) {
  EXPECT_THAT(row_borders({-59, 0, 59}), ElementsAre(-90, -29.5, 29.5, 90));
  EXPECT_THAT(row_borders({88, 85, 82}), ElementsAre(90, 86.5, 83.5, 80.5));  // at one end alone
}

TEST(RowBorders, OfARegionKeepTheirStep) { EXPECT_THAT(row_borders({20, 10}), ElementsAre(25, 15, 5)); }

TEST(RowBorders, OfOneRowAreThePoles) { EXPECT_THAT(row_borders({12}), ElementsAre(-90, 90)); }

}  // namespace
}  // namespace welkin::data
