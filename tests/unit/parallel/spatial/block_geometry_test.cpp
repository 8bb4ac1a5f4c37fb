// SPDX-License-Identifier: Apache-2.0
// Which cells a convolution needs, against every pair of cells that its kernel joins.
#include "parallel/spatial/block_geometry.h"

#include <gtest/gtest.h>

#include <vector>

namespace welkin::parallel {
namespace {

constexpr int64_t kCells = 24;  // tried on both sides of zero

// Whether cell `in` takes part in cell `out`, tap by tap.
bool joins(const AxisRule& rule, int64_t in, int64_t out) {
  for (int64_t k = 0; k < rule.kernel; ++k) {
    const int64_t from = rule.transposed ? out : in, to = rule.transposed ? in : out;
    if (from == to * rule.stride - rule.padding + k * rule.dilation) return true;
  }
  return false;
}

std::vector<AxisRule> rules() {
  std::vector<AxisRule> all;
  for (int64_t kernel = 1; kernel <= 5; ++kernel) {
    for (int64_t stride = 1; stride <= 3; ++stride) {
      for (int64_t padding = 0; padding <= 3; ++padding) {
        for (int64_t dilation = 1; dilation <= 3; ++dilation) {
          AxisRule rule{kernel, stride, padding, dilation, false};
          all.push_back(rule);
          rule.transposed = true;
          if (rule.reach() >= stride) all.push_back(rule);
        }
      }
    }
  }
  return all;
}

// Every cell that takes part lies in the range, and both of its ends do: where a dilated kernel leaves cells out, these lie
// between.
TEST(BlockGeometry, CellsNeededAreThoseThatTheKernelJoins) {
  for (const AxisRule& rule : rules()) {
    for (const CellRange made : {CellRange{0, 1}, CellRange{3, 5}, CellRange{-2, 4}, CellRange{5, 9}}) {
      const CellRange needed = cells_needed(rule, made);
      ASSERT_FALSE(needed.empty());
      for (int64_t in = -kCells; in < kCells; ++in) {
        for (int64_t out = made.begin; out < made.end; ++out) {
          if (joins(rule, in, out)) {
            ASSERT_TRUE(needed.begin <= in && in < needed.end) << in << " for " << out;
          }
        }
      }
      if (rule.transposed) continue;  // a tap of a transposed kernel may fall between its result's cells
      EXPECT_TRUE(joins(rule, needed.begin, made.begin));
      EXPECT_TRUE(joins(rule, needed.end - 1, made.end - 1));
    }
  }
}

TEST(BlockGeometry, WhatIsMadeFromHeldCellsIsTheMostThatNeedsNoOthers) {
  for (const AxisRule& rule : rules()) {
    const CellRange made{2, 11};
    for (int64_t begin = -6; begin < 12; ++begin) {
      for (int64_t end = begin; end < 20; ++end) {
        const CellRange held{begin, end};
        const CellRange part = made_from(rule, held, made);
        for (int64_t out = made.begin; out < made.end; ++out) {
          const bool is_enough = held.contains(cells_needed(rule, {out, out + 1}));
          ASSERT_EQ(is_enough, part.begin <= out && out < part.end) << out << " from " << begin << " to " << end;
        }
      }
    }
  }
}

// A kernel on the cells that are given, cell by cell: what padding adds or leaves is what is wanted. Cells outside of the box,
// here before 2 or from 6 on, need not be given.
TEST(BlockGeometry, PlacementFindsTheWantedCells) {
  for (const AxisRule& rule : rules()) {
    const CellRange made{4, 9};
    const CellRange needed = cells_needed(rule, made);
    for (const CellRange& box : {CellRange{-99, 99}, {2, 99}, {-99, 6}}) {
      const CellRange given = intersection(needed, box);
      if (given.empty()) continue;
      const AxisPlacement place = placement_of(rule, given, made);
      const int64_t both = place.padding + place.padding_end;
      if (!rule.transposed) {
        EXPECT_EQ(given.begin - place.padding, needed.begin);
        EXPECT_EQ((given.size() + both - rule.reach()) / rule.stride + 1, made.size());
        continue;
      }
      const int64_t first = given.begin * rule.stride - rule.padding + place.padding;
      EXPECT_EQ(first, made.begin);
      EXPECT_EQ(first + (given.size() - 1) * rule.stride + rule.reach() - both, made.end);
    }
  }
}

TEST(BlockGeometry, BlocksCoverAnAxisAndStayTogetherWhenItIsHalved) {
  for (const int64_t cells : {8, 24, 64, 128}) {
    for (int64_t blocks = 1; blocks <= 9; ++blocks) {
      int64_t next = 0;
      for (int64_t place = 0; place < blocks; ++place) {
        const CellRange block = block_of(cells, blocks, place);
        EXPECT_EQ(block.begin, next);
        next = block.end;
        EXPECT_LE(block.size(), cells / blocks + 1);
        EXPECT_EQ(block_of(cells / 2, blocks, place).begin, block.begin / 2);
      }
      EXPECT_EQ(next, cells);
    }
  }
}

}  // namespace
}  // namespace welkin::parallel
