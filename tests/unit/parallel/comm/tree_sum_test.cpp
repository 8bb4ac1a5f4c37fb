// SPDX-License-Identifier: Apache-2.0
// The order of the additions, on numbers for which it shows.
#include "parallel/comm/tree_sum.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <array>

namespace welkin::parallel {
namespace {

at::Tensor number(float value) { return at::full({2}, value, at::kFloat); }

TEST(TreeSum, AddsNeighboursFirst) {
  const std::array<float, 8> units{1e8F, 1.F, -1e8F, 1.F, 3.F, 1e-8F, 0.1F, 0.2F};
  TreeSum tree(Group{});
  for (const float unit : units) tree.add({number(unit)});
  const float expected = ((units[0] + units[1]) + (units[2] + units[3])) + ((units[4] + units[5]) + (units[6] + units[7]));
  float in_order = 0;
  for (const float unit : units) in_order += unit;
  const auto sums = tree.finish();
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_EQ(sums[0][0].item<float>(), expected);
  EXPECT_NE(in_order, expected);  // else this test could not fail
}

TEST(TreeSum, StartsOverAfterTheSum) {
  TreeSum tree(Group{});
  tree.add({number(1)});
  EXPECT_EQ(tree.finish()[0][1].item<float>(), 1);
  tree.add({number(2)});
  tree.add({number(3)});
  EXPECT_EQ(tree.finish()[0][1].item<float>(), 5);
}

}  // namespace
}  // namespace welkin::parallel
