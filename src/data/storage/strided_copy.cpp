// SPDX-License-Identifier: Apache-2.0
#include "data/storage/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace welkin::data {
namespace {

// Two axes at once: `v`, contiguous in the output, and `u`, nearest to contiguous in the source.
struct Tile {
  int64_t u_extent = 1, v_extent = 1;
  int64_t u_from = 0, v_from = 0;
  int64_t u_to = 0;
  const ChannelOp* op = nullptr;
};

void copy_row(const float* from, int64_t stride, float* to, int64_t count, const ChannelOp* op) {
  if (stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
  } else if (stride == -1) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[-i];
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
  }
  if (op != nullptr) apply(*op, to, count);
}

// 16 x 16 floats: a tile's source lines and its output lines stay in the first-level cache together.
constexpr int64_t kTileEdge = 16;

void copy_tiles(const float* from, float* to, const Tile& tile) {
  for (int64_t u0 = 0; u0 < tile.u_extent; u0 += kTileEdge) {
    const int64_t u1 = std::min(u0 + kTileEdge, tile.u_extent);
    for (int64_t v0 = 0; v0 < tile.v_extent; v0 += kTileEdge) {
      const int64_t count = std::min(kTileEdge, tile.v_extent - v0);
      for (int64_t u = u0; u < u1; ++u) {
        copy_row(from + u * tile.u_from + v0 * tile.v_from, tile.v_from, to + u * tile.u_to + v0, count, tile.op);
      }
    }
  }
}

void copy_plane(const float* from, float* to, const Tile& tile) {
  if (std::abs(tile.v_from) != 1) return copy_tiles(from, to, tile);
  for (int64_t u = 0; u < tile.u_extent; ++u)
    copy_row(from + u * tile.u_from, tile.v_from, to + u * tile.u_to, tile.v_extent, tile.op);
}

}  // namespace

void copy_strided(const StridedBlock& block) {
  std::array<size_t, 3> order{0, 1, 2};  // the source's largest step outermost
  std::ranges::sort(order, [&](size_t a, size_t b) { return std::abs(block.from_stride[a]) > std::abs(block.from_stride[b]); });
  const auto [a, b, u] = order;
  const Tile tile{.u_extent = block.extent[u],
                  .v_extent = block.extent[3],
                  .u_from = block.from_stride[u],
                  .v_from = block.from_stride[3],
                  .u_to = block.to_stride[u],
                  .op = block.op};
  for (int64_t i = 0; i < block.extent[a]; ++i) {
    for (int64_t j = 0; j < block.extent[b]; ++j) {
      copy_plane(block.from + i * block.from_stride[a] + j * block.from_stride[b],
                 block.to + i * block.to_stride[a] + j * block.to_stride[b], tile);
    }
  }
}

}  // namespace welkin::data
