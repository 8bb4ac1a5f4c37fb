// SPDX-License-Identifier: Apache-2.0
// The messages by which a convolution is computed block by block, and the pieces in which a member computes its own block. Pure
// arithmetic, torch-free. A halo is the set of cells that a block needs beyond its own, corners included, from all blocks that
// have some of them. Grids have the axes d, h, w.
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
  int64_t cells() const;  // 0 if it is empty
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

// A layer between two grids of the same members.
struct BlockLayer {
  std::array<AxisRule, kSpaceAxes> rules{};
  BlockGrid in, out;                                           // with the same blocks
  std::array<bool, kSpaceAxes> periodic{false, false, false};  // false: cells beyond the border are zero
  bool in_one_piece =
      false;  // true: no overlap, the whole block follows the exchange, since pieces would cost more than they hide
};

// Cells that one member sends and another receives: their place in the box, and in the receiver's needed block, which is
// shifted by a whole axis if a halo wraps around.
struct HaloBox {
  Block from, to;
  bool operator==(const HaloBox&) const = default;
};

struct HaloMessage {
  int64_t peer = 0;  // rank in the group
  std::vector<HaloBox> boxes;

  int64_t cells() const;
};

// A part of the own result, computed by one call of the layer.
struct HaloPiece {
  Block made, needed;  // without cells outside of the box, unless the axis is periodic
  std::array<AxisPlacement, kSpaceAxes> placement{};
  bool reaches_out = false;  // true: all needed cells are outside of the box, along an axis that is not periodic: zeros
};

struct HaloPlan {
  Block held, made;  // own blocks of input and result
  bool has_interior = false;
  // Disjoint parts of `made`. The interior, which needs own cells only, and zeros beyond the box, is the first.
  std::vector<HaloPiece> pieces{};
  std::vector<HaloMessage> sends{}, receives{};  // by ascending peer
  std::vector<HaloBox> own_images{};             // own cells, around a periodic axis

  bool exchanges() const { return !sends.empty() || !receives.empty() || !own_images.empty(); }
  int64_t cells_sent() const;  // times channels, samples and bytes of an element: bytes that a member sends in a forward pass
};

// The plan of the member at `place`. `coordinates`: of every member of the group, by rank.
HaloPlan halo_plan(const BlockLayer& layer, const std::vector<Cells>& coordinates, int64_t place);

// `whole` without `inner`, which lies in it, as disjoint slabs along the axes in turn.
std::vector<Block> around(const Block& whole, const Block& inner);

}  // namespace welkin::parallel
