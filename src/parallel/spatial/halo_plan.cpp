// SPDX-License-Identifier: Apache-2.0
#include "parallel/spatial/halo_plan.h"

#include <algorithm>
#include <numeric>

namespace welkin::parallel {
namespace {

bool is_exchanged(const BlockLayer& layer, size_t axis) { return layer.in.blocks[axis] > 1 || layer.periodic[axis]; }

// The cells that a member needs for its block: own cells and halo, without padding.
Block needed_of(const BlockLayer& layer, const Block& made, const Block& held) {
  Block needed = held;
  for (size_t a = 0; a < kSpaceAxes; ++a) {
    if (made.empty()) return {};
    if (!is_exchanged(layer, a)) continue;
    needed.axes[a] = cells_needed(layer.rules[a], made.axes[a]);
    if (!layer.periodic[a]) needed.axes[a] = intersection(needed.axes[a], {0, layer.in.cells[a]});
  }
  return needed;
}

// The shifts along each axis that bring cells to a halo: whole turns around periodic axes.
std::vector<Cells> turns_of(const BlockLayer& layer, const Block& needed) {
  std::vector<Cells> turns{{0, 0, 0}};
  for (size_t a = 0; a < kSpaceAxes; ++a) {
    if (!layer.periodic[a] || needed.axes[a].empty()) continue;
    const int64_t edge = layer.in.cells[a];
    const std::vector<Cells> before = turns;
    turns.clear();
    for (int64_t turn = floor_quotient(needed.axes[a].begin, edge); turn * edge < needed.axes[a].end; ++turn) {
      for (Cells shift : before) {
        shift[a] = turn * edge;
        turns.push_back(shift);
      }
    }
  }
  return turns;
}

Block shifted(Block block, const Cells& by, int64_t sign) {
  for (size_t a = 0; a < kSpaceAxes; ++a) block.axes[a] = block.axes[a].shifted(sign * by[a]);
  return block;
}

// The cells of `held` that `needed` contains.
std::vector<HaloBox> boxes_of(const BlockLayer& layer, const Block& held, const Block& needed, bool is_own) {
  std::vector<HaloBox> boxes;
  if (held.empty() || needed.empty()) return boxes;
  for (const Cells& turn : turns_of(layer, needed)) {
    if (is_own && turn == Cells{0, 0, 0}) continue;
    const Block to = intersection(shifted(held, turn, 1), needed);
    if (!to.empty()) boxes.push_back({shifted(to, turn, -1), to});
  }
  return boxes;
}

HaloPiece piece_of(const BlockLayer& layer, const Block& held, const Block& made) {
  HaloPiece piece{.made = made, .needed = held};
  for (size_t a = 0; a < kSpaceAxes; ++a) {
    piece.placement[a] = {layer.rules[a].padding, layer.rules[a].padding};
    if (!is_exchanged(layer, a)) continue;
    CellRange& needed = piece.needed.axes[a];
    needed = cells_needed(layer.rules[a], made.axes[a]);
    if (!layer.periodic[a]) {
      const CellRange inside = intersection(needed, {0, layer.in.cells[a]});
      piece.reaches_out = piece.reaches_out || inside.empty();
      if (!inside.empty()) needed = inside;
    }
    piece.placement[a] = placement_of(layer.rules[a], needed, made.axes[a]);
  }
  return piece;
}

// Own cells of an axis, and zeros beyond the borders of the box, as far as any kernel reaches.
CellRange with_zeros(const BlockLayer& layer, size_t axis, const CellRange& held) {
  const AxisRule& rule = layer.rules[axis];
  const int64_t far = rule.reach() + rule.padding + rule.stride, cells = layer.in.cells[axis];
  if (layer.periodic[axis]) return held;
  return {held.begin == 0 ? -far : held.begin, held.end == cells ? cells + far : held.end};
}

void cut_into_pieces(const BlockLayer& layer, HaloPlan& plan) {
  if (plan.made.empty()) return;
  Block interior = plan.made;
  for (size_t a = 0; a < kSpaceAxes; ++a) {
    if (!is_exchanged(layer, a)) continue;
    interior.axes[a] = made_from(layer.rules[a], with_zeros(layer, a, plan.held.axes[a]), plan.made.axes[a]);
  }
  const bool is_whole = interior == plan.made;
  plan.has_interior =
      !interior.empty() && (is_whole || !layer.in_one_piece) && plan.held.contains(piece_of(layer, plan.held, interior).needed);
  if (!plan.has_interior) {
    plan.pieces.push_back(piece_of(layer, plan.held, plan.made));
    return;
  }
  plan.pieces.push_back(piece_of(layer, plan.held, interior));
  for (const Block& slab : around(plan.made, interior)) plan.pieces.push_back(piece_of(layer, plan.held, slab));
}

}  // namespace

bool Block::empty() const {
  return std::ranges::any_of(axes, [](const CellRange& range) { return range.empty(); });
}

int64_t Block::cells() const {
  if (empty()) return 0;
  return axes[0].size() * axes[1].size() * axes[2].size();
}

Cells Block::extent() const { return {axes[0].size(), axes[1].size(), axes[2].size()}; }

bool Block::contains(const Block& other) const {
  for (size_t a = 0; a < kSpaceAxes; ++a) {
    if (!axes[a].contains(other.axes[a])) return false;
  }
  return true;
}

Block intersection(const Block& a, const Block& b) {
  Block both;
  for (size_t i = 0; i < kSpaceAxes; ++i) both.axes[i] = intersection(a.axes[i], b.axes[i]);
  return both;
}

Block BlockGrid::block(const Cells& coordinates) const {
  Block block;
  for (size_t a = 0; a < kSpaceAxes; ++a) block.axes[a] = block_of(cells[a], blocks[a], coordinates[a]);
  return block;
}

int64_t HaloMessage::cells() const {
  return std::accumulate(boxes.begin(), boxes.end(), int64_t{0},
                         [](int64_t sum, const HaloBox& box) { return sum + box.from.cells(); });
}

int64_t HaloPlan::cells_sent() const {
  return std::accumulate(sends.begin(), sends.end(), int64_t{0},
                         [](int64_t sum, const HaloMessage& message) { return sum + message.cells(); });
}

std::vector<Block> around(const Block& whole, const Block& inner) {
  std::vector<Block> slabs;
  Block left = whole;
  for (size_t a = 0; a < kSpaceAxes; ++a) {
    for (const CellRange& range : {CellRange{left.axes[a].begin, inner.axes[a].begin}, {inner.axes[a].end, left.axes[a].end}}) {
      Block slab = left;
      slab.axes[a] = range;
      if (!slab.empty()) slabs.push_back(slab);
    }
    left.axes[a] = inner.axes[a];
  }
  return slabs;
}

HaloPlan halo_plan(const BlockLayer& layer, const std::vector<Cells>& coordinates, int64_t place) {
  const auto held_at = [&](size_t at) { return layer.in.block(coordinates.at(at)); };
  const auto needed_at = [&](size_t at) { return needed_of(layer, layer.out.block(coordinates.at(at)), held_at(at)); };
  const auto own = static_cast<size_t>(place);
  HaloPlan plan{.held = held_at(own), .made = layer.out.block(coordinates.at(own))};
  const Block needed = needed_at(own);
  for (size_t peer = 0; peer < coordinates.size(); ++peer) {
    std::vector<HaloBox> coming = boxes_of(layer, held_at(peer), needed, peer == own);
    if (peer == own) {
      plan.own_images = std::move(coming);
      continue;
    }
    std::vector<HaloBox> going = boxes_of(layer, plan.held, needed_at(peer), /*is_own=*/false);
    if (!coming.empty()) plan.receives.push_back({static_cast<int64_t>(peer), std::move(coming)});
    if (!going.empty()) plan.sends.push_back({static_cast<int64_t>(peer), std::move(going)});
  }
  cut_into_pieces(layer, plan);
  return plan;
}

}  // namespace welkin::parallel
