// SPDX-License-Identifier: Apache-2.0
// Who sends which cells to whom so that a convolution can be computed block by block, and in which pieces a member computes its
// own block; pure arithmetic, torch-free. A halo is what a block needs beyond its own cells, corners included, from as many
// blocks as hold some of it. Grids have the axes d, h, w.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel/spatial/block_geometry.h"

namespace welkin::parallel {

inline constexpr size_t kSpaceAxes = 3;
inline constexpr int64_t kFirstSpaceDim = 2;  // of (B, C, D, H, W)
using Cells = std::array<int64_t, kSpaceAxes>;

struct Block {
  std::array<CellRange, kSpaceAxes> axes{};

  bool empty() const;
  int64_t cells() const;  // 0 where it is empty
  Cells extent() const;
  bool contains(const Block& other) const;
  bool operator==(const Block&) const = default;
};

Block intersection(const Block& a, const Block& b);

// A box cut into blocks: the member with coordinates c has the block c.
struct BlockGrid {
  Cells cells{1, 1, 1};
  Cells blocks{1, 1, 1};

  Block block(const Cells& coordinates) const;
};

// A layer between two grids that the same members share.
struct BlockLayer {
  std::array<AxisRule, kSpaceAxes> rules{};
  BlockGrid in, out;                                           // with the same blocks
  std::array<bool, kSpaceAxes> periodic{false, false, false};  // else cells beyond the border are zero
  bool in_one_piece =
      false;  // what needs halos is computed at once behind the exchange, where pieces would cost more than it hides
};

// Cells that one member sends and another receives: where they lie in the box, and where the receiver's needed block has them,
// which is a whole axis away where a halo goes around.
struct HaloBox {
  Block from, to;
  bool operator==(const HaloBox&) const = default;
};

struct HaloMessage {
  int64_t peer = 0;  // place in the group
  std::vector<HaloBox> boxes;

  int64_t cells() const;
};

// A part of the own result, computed by one call of the layer.
struct HaloPiece {
  Block made, needed;  // what lies outside of the box is zero, unless the axis is periodic
  std::array<AxisPlacement, kSpaceAxes> placement{};
};

struct HaloPlan {
  Block held, made;  // own blocks of input and result
  bool has_interior = false;
  std::vector<HaloPiece> pieces{};  // make up `made`, disjoint; the interior, which needs own cells alone, is the first
  std::vector<HaloMessage> sends{}, receives{};  // by ascending peer
  std::vector<HaloBox> own_images{};             // of own cells, around a periodic axis

  bool exchanges() const { return !sends.empty() || !receives.empty() || !own_images.empty(); }
  int64_t cells_sent() const;  // each times channels, samples and bytes of an element: what a member sends in a forward pass
};

// Of the member at `place`. `coordinates`: of every member of the group, by place.
HaloPlan halo_plan(const BlockLayer& layer, const std::vector<Cells>& coordinates, int64_t place);

// `whole` without `inner`, which lies in it: disjoint slabs along the axes in turn.
std::vector<Block> around(const Block& whole, const Block& inner);

}  // namespace welkin::parallel
