// SPDX-License-Identifier: Apache-2.0
// Matmuls of bfloat16 by the tiles of AMX: registers of 16 rows of 64 bytes. One instruction multiplies two of them and adds
// the product to a third. Sums are float32. In an unnamed namespace for the reason in ops/cpu/lanes/lanes.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "ops/cpu/lanes/bf16.h"
#include "ops/cpu/lanes/lanes.h"

namespace welkin::ops {
namespace {

constexpr int64_t kTileRows = 16;   // of a left operand and of a sum; columns of a right operand and of a sum
constexpr int64_t kTileDepth = 32;  // depth of one instruction
constexpr int64_t kSumStride = 32;  // floats between rows of a block of sums
constexpr int64_t kSumBlock = 32;   // rows and columns of a block: two tiles each way

// The tile configuration (Intel, Architecture Instruction Set Extensions, "TILECFG").
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// While alive, tiles 0 to 3 are sums of 16 x 16, 4 and 5 left operands of 16 x depth, 6 and 7 right operands of depth x 16
// (depth / 2 rows of pairs); depth is 32 or 16. Other libraries configure tiles, too; none may run in between on this thread.
class Tiles {
 public:
  WELKIN_INLINE explicit Tiles(int64_t depth) {
    TileConfig config;
    for (int t = 0; t < 8; ++t) {
      const bool left = t == 4 || t == 5;
      const bool right = t >= 6;
      config.row_bytes[t] = static_cast<uint16_t>(left ? depth * 2 : 64);
      config.rows[t] = static_cast<uint8_t>(right ? depth / 2 : kTileRows);
    }
    _tile_loadconfig(&config);
  }
  WELKIN_INLINE ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

template <int Rows, int Columns>
struct TileShape {
  static constexpr int kRows = Rows;
  static constexpr int kColumns = Columns;
};

// Left operand (rows, depth), strides in bytes; right operand as interleaved pairs of rows, `right_row` bytes from pair to pair.
struct TileOperands {
  const Bf16* left;
  int64_t left_row;
  const Bf16* right;
  int64_t right_row;
  int64_t steps;      // number of instructions along the depth
  int64_t left_step;  // bytes from one instruction's operand to the next
  int64_t right_step;
};

// A compiler barrier: compilers do not know that tile loads read memory, so earlier stores must stay before them.
WELKIN_INLINE void tiles_see_memory() { asm volatile("" ::: "memory"); }

// Sums of (16 R, 16 V), R and V 1 or 2, in tiles 0 to 3: set to zero, load from memory at `stride` floats, add a matmul,
// store to memory.
template <int R, int V>
WELKIN_INLINE void zero_tiles() {
  _tile_zero(0);
  if constexpr (V == 2) _tile_zero(1);
  if constexpr (R == 2) _tile_zero(2);
  if constexpr (R == 2 && V == 2) _tile_zero(3);
}

template <int R, int V>
WELKIN_INLINE void load_tiles(const float* sums, int64_t stride) {
  const int64_t row = stride * static_cast<int64_t>(sizeof(float));
  tiles_see_memory();
  _tile_loadd(0, sums, row);
  if constexpr (V == 2) _tile_loadd(1, sums + kTileRows, row);
  if constexpr (R == 2) _tile_loadd(2, sums + kTileRows * stride, row);
  if constexpr (R == 2 && V == 2) _tile_loadd(3, sums + kTileRows * stride + kTileRows, row);
}

template <int R, int V>
WELKIN_INLINE void add_tiles(const TileOperands& o) {
  const auto* left = reinterpret_cast<const char*>(o.left);
  const auto* right = reinterpret_cast<const char*>(o.right);
  tiles_see_memory();
  for (int64_t s = 0; s < o.steps; ++s) {
    _tile_loadd(4, left, o.left_row);
    _tile_loadd(6, right, o.right_row);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (V == 2) {
      _tile_loadd(7, right + 64, o.right_row);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (R == 2) {
      _tile_loadd(5, left + kTileRows * o.left_row, o.left_row);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (R == 2 && V == 2) _tile_dpbf16ps(3, 5, 7);
    left += o.left_step;
    right += o.right_step;
  }
}

template <int R, int V>
WELKIN_INLINE void store_tiles(float* sums, int64_t stride) {
  const int64_t row = stride * static_cast<int64_t>(sizeof(float));
  _tile_stored(0, sums, row);
  if constexpr (V == 2) _tile_stored(1, sums + kTileRows, row);
  if constexpr (R == 2) _tile_stored(2, sums + kTileRows * stride, row);
  if constexpr (R == 2 && V == 2) _tile_stored(3, sums + kTileRows * stride + kTileRows, row);
}

// sums (rows, columns), up to two tiles each way, at `stride` = the sum of the matmuls of operands(0) to operands(count - 1).
template <typename Operands>
WELKIN_INLINE void tile_matmuls(int64_t count, Operands&& operands, int64_t rows, int64_t columns, float* sums, int64_t stride) {
  const auto matmul = [&](auto shape) {
    constexpr int kRows = decltype(shape)::kRows;
    constexpr int kColumns = decltype(shape)::kColumns;
    zero_tiles<kRows, kColumns>();
    for (int64_t i = 0; i < count; ++i) add_tiles<kRows, kColumns>(operands(i));
    store_tiles<kRows, kColumns>(sums, stride);
  };
  if (rows > kTileRows) {
    columns > kTileRows ? matmul(TileShape<2, 2>{}) : matmul(TileShape<2, 1>{});
  } else {
    columns > kTileRows ? matmul(TileShape<1, 2>{}) : matmul(TileShape<1, 1>{});
  }
}
WELKIN_INLINE void tile_matmul(const TileOperands& o, int64_t rows, int64_t columns, float* sums, int64_t stride) {
  tile_matmuls(
      1, [&](int64_t) { return o; }, rows, columns, sums, stride);
}

}  // namespace
}  // namespace welkin::ops
