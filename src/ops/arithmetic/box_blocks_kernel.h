// SPDX-License-Identifier: Apache-2.0
// Rearranges a box into blocks of 2 x 2 x 2 points on a GPU; torch-free. Memory is channels-last without gaps. A box x (boxes,
// n0, n1, n2, channels) with zeros around it is the blocks T (boxes, n0/2+1, n1/2+1, n2/2+1, 8 channels):
//   T(b, j, (q, c)) = x(b, 2 j + q - 1, c), q in {0, 1}^3, the last axis fastest.
// Every point of x is in exactly one block, so the gradient of either direction is the other.
#pragma once

#include <cstdint>

namespace welkin::ops {

inline constexpr int kBlockPoints = 8;

struct BlocksShape {
  int64_t boxes = 0, channels = 0;
  int64_t points[3]{};  // of the box, even

  constexpr int64_t blocks(int axis) const { return points[axis] / 2 + 1; }
};

// Low is the type of activations: float, half or bfloat16.
template <typename Low>
struct ToBlocks {
  BlocksShape shape;
  const Low* box = nullptr;
  Low* blocks = nullptr;
};

template <typename Low>
struct FromBlocks {
  BlocksShape shape;
  const Low* blocks = nullptr;
  const float* bias = nullptr;  // (channels), added; null: none
  float slope = 1;              // of the leaky ReLU that follows; 1: none
  Low* box = nullptr;
};

// Rows along the last axis, and runs of `pack` channels per row.
constexpr int64_t block_rows(const BlocksShape& shape) { return shape.boxes * shape.blocks(0) * shape.blocks(1); }
constexpr int64_t block_packs(const BlocksShape& shape, int pack) {
  return shape.blocks(2) * kBlockPoints * (shape.channels / pack);
}
constexpr int64_t box_rows(const BlocksShape& shape) { return shape.boxes * shape.points[0] * shape.points[1]; }
constexpr int64_t box_packs(const BlocksShape& shape, int pack) { return shape.points[2] * (shape.channels / pack); }

// Position in the box of pack `item` of row `row` of the blocks; negative: outside of the box.
constexpr int64_t place_in_box(const BlocksShape& shape, int64_t row, uint32_t item, int pack) {
  const auto packs = static_cast<uint32_t>(shape.channels / pack);
  const uint32_t block = item / packs, q = block % kBlockPoints;
  const auto plane = row / shape.blocks(1);
  const int64_t i0 = 2 * (plane % shape.blocks(0)) + q / 4 - 1;
  const int64_t i1 = 2 * (row % shape.blocks(1)) + q / 2 % 2 - 1;
  const int64_t i2 = 2 * int64_t{block / kBlockPoints} + q % 2 - 1;
  if (i0 < 0 || i1 < 0 || i2 < 0 || i0 >= shape.points[0] || i1 >= shape.points[1] || i2 >= shape.points[2]) return -1;
  const int64_t point = ((plane / shape.blocks(0) * shape.points[0] + i0) * shape.points[1] + i1) * shape.points[2] + i2;
  return point * shape.channels + int64_t{item % packs} * pack;
}

// Position in the blocks of pack `item` of row `row` of the box.
constexpr int64_t place_in_blocks(const BlocksShape& shape, int64_t row, uint32_t item, int pack) {
  const auto packs = static_cast<uint32_t>(shape.channels / pack);
  const int64_t plane = row / shape.points[1];
  const int64_t up0 = plane % shape.points[0] + 1, up1 = row % shape.points[1] + 1, up2 = int64_t{item / packs} + 1;
  const int64_t block =
      ((plane / shape.points[0] * shape.blocks(0) + up0 / 2) * shape.blocks(1) + up1 / 2) * shape.blocks(2) + up2 / 2;
  const int64_t q = up0 % 2 * 4 + up1 % 2 * 2 + up2 % 2;
  return (block * kBlockPoints + q) * shape.channels + int64_t{item % packs} * pack;
}

}  // namespace welkin::ops
