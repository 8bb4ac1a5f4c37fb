// SPDX-License-Identifier: Apache-2.0
// Weights of crops add up to one at every cell, of at most two crops, and each stands alone at its centre.
#include "train/mosaic/mosaic_axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "number_close.h"

namespace welkin::train {
namespace {

using ::testing::ElementsAre;

struct AxisCase {
  int64_t extent, crop, overlap;
  bool is_periodic;
};

class MosaicAxisTest : public ::testing::TestWithParam<AxisCase> {};

TEST_P(MosaicAxisTest, WeightsAreAPartitionOfOne) {
  const auto [extent, crop, overlap, is_periodic] = GetParam();
  const MosaicAxis axis(extent, crop, overlap, is_periodic);
  std::vector<double> sum(static_cast<size_t>(extent), 0.0);
  std::vector<int> count(static_cast<size_t>(extent), 0);
  for (int64_t c = 0; c < axis.num_crops(); ++c) {
    for (int64_t i = 0; i < crop; ++i) {
      const auto cell = static_cast<size_t>((axis.first(c) + i) % extent);
      sum[cell] += axis.weight(c, i);
      count[cell] += axis.weight(c, i) > 0 ? 1 : 0;
    }
    EXPECT_EQ(axis.weight(c, (crop - 1) / 2), 1) << c;
  }
  for (int64_t cell = 0; cell < extent; ++cell) {
    const auto at = static_cast<size_t>(cell);
    EXPECT_TRUE(tests::close(sum[at], 1, kFp64, 8)) << cell;
    EXPECT_LE(count[at], 2) << cell;
    EXPECT_EQ(static_cast<int>(axis.crops_at(cell).size()), count[at]) << cell;
  }
}

INSTANTIATE_TEST_SUITE_P(Axes, MosaicAxisTest,
                         ::testing::Values(AxisCase{16, 8, 2, true}, AxisCase{16, 8, 2, false}, AxisCase{17, 8, 3, true},
                                           AxisCase{19, 8, 3, false}, AxisCase{8, 8, 2, false}, AxisCase{8, 8, 2, true},
                                           AxisCase{9, 8, 2, false}, AxisCase{64, 16, 0, true}, AxisCase{100, 32, 15, false}));

TEST(MosaicAxis, RefusesWhatCannotBe) {
  EXPECT_THROW(MosaicAxis(16, 8, 4, true), ConfigError);
  EXPECT_THROW(MosaicAxis(7, 8, 2, false), ConfigError);
}

}  // namespace
}  // namespace welkin::train
