// SPDX-License-Identifier: Apache-2.0
// Plans of all members together: everything that is needed arrives once, from who holds it, and the pieces make up the result.
#include "parallel/spatial/halo_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace welkin::parallel {
namespace {

std::vector<Cells> all_coordinates(const Cells& blocks) {
  std::vector<Cells> all;
  for (int64_t d = 0; d < blocks[0]; ++d) {
    for (int64_t h = 0; h < blocks[1]; ++h) {
      for (int64_t w = 0; w < blocks[2]; ++w) all.push_back({d, h, w});
    }
  }
  return all;
}

BlockLayer halving(const Cells& cells, const Cells& blocks, bool periodic) {
  const AxisRule rule{.kernel = 4, .stride = 2, .padding = 1};
  return {.rules = {rule, rule, rule},
          .in = {cells, blocks},
          .out = {{cells[0] / 2, cells[1] / 2, cells[2] / 2}, blocks},
          .periodic = {periodic, periodic, periodic}};
}

BlockLayer doubling(const Cells& cells, const Cells& blocks, bool periodic) {
  BlockLayer layer = halving({2 * cells[0], 2 * cells[1], 2 * cells[2]}, blocks, periodic);
  std::swap(layer.in, layer.out);
  for (AxisRule& rule : layer.rules) rule.transposed = true;
  return layer;
}

template <typename Body>
void for_cells(const Block& block, Body&& body) {
  for (int64_t d = block.axes[0].begin; d < block.axes[0].end; ++d) {
    for (int64_t h = block.axes[1].begin; h < block.axes[1].end; ++h) {
      for (int64_t w = block.axes[2].begin; w < block.axes[2].end; ++w) body(Cells{d, h, w});
    }
  }
}

int64_t wrapped(int64_t cell, int64_t edge) { return ((cell % edge) + edge) % edge; }

// How often each cell that a piece needs is there: own, or from a message.
void check_member(const BlockLayer& layer, const HaloPlan& plan) {
  std::map<Cells, int> there, made;
  for_cells(plan.held, [&](const Cells& cell) { ++there[cell]; });
  std::vector<HaloBox> boxes = plan.own_images;
  for (const HaloMessage& message : plan.receives) boxes.insert(boxes.end(), message.boxes.begin(), message.boxes.end());
  for (const HaloBox& box : boxes) {
    ASSERT_EQ(box.from.extent(), box.to.extent());
    for (size_t a = 0; a < kSpaceAxes; ++a) {
      EXPECT_EQ(wrapped(box.to.axes[a].begin, layer.in.cells[a]), box.from.axes[a].begin);
    }
    for_cells(box.to, [&](const Cells& cell) { ++there[cell]; });
  }
  for (const HaloPiece& piece : plan.pieces) {
    for_cells(piece.made, [&](const Cells& cell) { ++made[cell]; });
    for_cells(piece.needed, [&](const Cells& cell) {
      bool is_inside = true;
      for (size_t a = 0; a < kSpaceAxes; ++a) {
        is_inside = is_inside && (layer.periodic[a] || (cell[a] >= 0 && cell[a] < layer.in.cells[a]));
      }
      EXPECT_EQ(there[cell], is_inside ? 1 : 0);
    });
  }
  EXPECT_EQ(static_cast<int64_t>(made.size()), plan.made.cells());
  for_cells(plan.made, [&](const Cells& cell) { EXPECT_EQ(made[cell], 1); });
  EXPECT_TRUE(!plan.has_interior || plan.held.contains(plan.pieces.front().needed));
}

void check_layer(const BlockLayer& layer) {
  const std::vector<Cells> coordinates = all_coordinates(layer.in.blocks);
  std::vector<HaloPlan> plans;
  for (size_t place = 0; place < coordinates.size(); ++place) {
    plans.push_back(halo_plan(layer, coordinates, static_cast<int64_t>(place)));
    check_member(layer, plans.back());
  }
  std::map<std::pair<int64_t, int64_t>, std::vector<HaloBox>> sent, received;
  for (size_t place = 0; place < plans.size(); ++place) {
    for (const HaloMessage& message : plans[place].sends) sent[{static_cast<int64_t>(place), message.peer}] = message.boxes;
    for (const HaloMessage& message : plans[place].receives) {
      received[{message.peer, static_cast<int64_t>(place)}] = message.boxes;
    }
  }
  EXPECT_EQ(sent, received);
}

TEST(HaloPlan, EveryCellComesOnceFromWhoHoldsIt) {
  for (const bool periodic : {false, true}) {
    for (const Cells& blocks : {Cells{1, 1, 2}, Cells{3, 1, 1}, Cells{1, 2, 2}, Cells{2, 2, 2}, Cells{1, 1, 5}}) {
      for (const Cells& cells : {Cells{8, 8, 8}, Cells{4, 6, 10}, Cells{2, 2, 2}}) {
        check_layer(halving(cells, blocks, periodic));
        check_layer(doubling({cells[0] / 2, cells[1] / 2, cells[2] / 2}, blocks, periodic));
      }
    }
  }
}

TEST(HaloPlan, KernelsThatReachOverSeveralBlocks) {
  const AxisRule wide{.kernel = 7, .stride = 1, .padding = 6, .dilation = 2}, point{};
  BlockLayer layer{.rules = {point, point, wide}, .in = {{3, 3, 10}, {1, 1, 5}}, .out = {{3, 3, 10}, {1, 1, 5}}};
  check_layer(layer);
  layer.periodic[2] = true;
  check_layer(layer);
}

// The layer of the U-Net on 8^3 cells over 1x2x2: one plane of the neighbour on either axis, and the column at the corner.
TEST(HaloPlan, SendsAsManyCellsAsTheFormulaSays) {
  const BlockLayer layer = halving({8, 8, 8}, {1, 2, 2}, false);
  for (int64_t place = 0; place < 4; ++place) {
    EXPECT_EQ(halo_plan(layer, all_coordinates({1, 2, 2}), place).cells_sent(), 8 * (4 + 4 + 1));
  }
}

// Zeros beyond the border are no halo: what needs them, and no cells of others, is computed while halos travel.
TEST(HaloPlan, TheBorderOfTheBoxBelongsToTheInterior) {
  const BlockLayer layer = halving({16, 16, 16}, {2, 1, 1}, false);
  const HaloPlan first = halo_plan(layer, all_coordinates({2, 1, 1}), 0),
                 second = halo_plan(layer, all_coordinates({2, 1, 1}), 1);
  ASSERT_TRUE(first.has_interior && second.has_interior);
  ASSERT_EQ(first.pieces.size(), 2U);
  ASSERT_EQ(second.pieces.size(), 2U);
  EXPECT_EQ(first.pieces[0].made.axes[0], (CellRange{0, 3}));
  EXPECT_EQ(first.pieces[0].needed.axes[0], (CellRange{0, 7}));
  EXPECT_EQ(first.pieces[0].placement[0], (AxisPlacement{1, 0}));
  EXPECT_EQ(second.pieces[0].made.axes[0], (CellRange{5, 8}));
  EXPECT_EQ(second.pieces[0].placement[0], (AxisPlacement{0, 1}));
  EXPECT_EQ(second.pieces[1].needed.axes[0], (CellRange{7, 11}));
  EXPECT_EQ(second.pieces[1].placement[0], (AxisPlacement{0, 0}));
}

TEST(HaloPlan, WhatIsSmallerThanTheRanksGathersOntoFewer) {
  const BlockLayer layer = halving({2, 2, 2}, {1, 1, 4}, false);
  int64_t working = 0;
  for (int64_t place = 0; place < 4; ++place) {
    working += halo_plan(layer, all_coordinates({1, 1, 4}), place).pieces.empty() ? 0 : 1;
  }
  EXPECT_EQ(working, 1);
}

TEST(HaloPlan, NothingIsExchangedAlongAWholeAxis) {
  const HaloPlan plan = halo_plan(halving({8, 8, 8}, {1, 1, 1}, false), {{0, 0, 0}}, 0);
  EXPECT_FALSE(plan.exchanges());
  ASSERT_EQ(plan.pieces.size(), 1U);
  EXPECT_EQ(plan.pieces.front().placement[0].padding, 1);
}

}  // namespace
}  // namespace welkin::parallel
