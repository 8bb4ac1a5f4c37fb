// SPDX-License-Identifier: Apache-2.0
// Shared by convolutions of bfloat16, whatever their matmuls: panels of weights and epilogues. In an unnamed namespace
// for the reason in ops/cpu/lanes/lanes.h.
#pragma once

#include "ops/cpu/convolution/convolution_tiles.h"
#include "ops/cpu/lanes/bf16_dot.h"

namespace welkin::ops {
namespace {

// Depth must be even: it reads pairs of rows.
void pack_rows_bf16(const WeightMatrix& from, int64_t depth, int64_t width, Bf16* to) {
  for (int64_t k = 0; k < depth; k += 2, to += 2 * width) {
    const float* row = from.data + k * from.depth_stride;
    ask_for_row(row + kRowsAhead * from.depth_stride, width);
    ask_for_row(row + (kRowsAhead + 1) * from.depth_stride, width);
    for (int64_t n = 0; n < width; n += 16) {
      _mm512_storeu_si512(to + 2 * n, interleaved(to_bf16(load<16>(row + n)), to_bf16(load<16>(row + from.depth_stride + n))));
    }
  }
}

// For contiguous depth: pairs of sixteen columns are transposed as words. The next part of each column is prefetched, since
// there are more columns than a processor's prefetcher follows.
template <int64_t Depth>
WELKIN_INLINE void pack_column_block(const WeightMatrix& from, int64_t k0, int64_t n, int64_t width, Bf16* to) {
  constexpr int64_t kBlocksAhead = 2;
  Floats<16> words[16];
  for (int64_t i = 0; i < 16; ++i) {
    const float* column = from.data + (n + i) * from.width_stride + k0;
    for (int64_t k = 0; k < Depth; k += kLineFloats) __builtin_prefetch(column + kBlocksAhead * Depth + k);
    const auto low = reinterpret_cast<__m512>(load<16>(column));
    const auto high = Depth == 32 ? reinterpret_cast<__m512>(load<16>(column + 16)) : __m512{};
    words[i] = reinterpret_cast<Floats<16>>(_mm512_cvtne2ps_pbh(high, low));
  }
  transpose<16>(words);
  for (int64_t p = 0; p < Depth / 2; ++p) {
    _mm512_storeu_si512(to + ((k0 / 2 + p) * width + n) * 2, reinterpret_cast<__m512i>(words[p]));
  }
}

void pack_columns_bf16(const WeightMatrix& from, int64_t depth, int64_t width, Bf16* to) {
  for (int64_t n = 0; n < width; n += 16) {
    int64_t k = 0;
    for (; k + 32 <= depth; k += 32) pack_column_block<32>(from, k, n, width, to);
    if (k < depth) pack_column_block<16>(from, k, n, width, to);
  }
}

void pack_bf16(const WeightMatrix& from, int64_t depth, int64_t width, Bf16* to) {
  if (from.width_stride == 1) return pack_rows_bf16(from, depth, width, to);
  pack_columns_bf16(from, depth, width, to);
}

void activate_bf16(const float* x, float slope, int64_t count, Bf16* to) {
  const LeakyReluLanes<16> leaky_relu(slope);
  for (int64_t i = 0; i < count; i += 16) store_bf16(to + i, leaky_relu.of(load<16>(x + i)));
}

void gate_bf16(const Bf16* grad, const Bf16* out, float slope, int64_t rows, int64_t width, Bf16* gated, float* sums) {
  const LeakyReluLanes<16> leaky_relu(slope);
  for (int64_t n = 0; n < width; ++n) sums[n] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = r * width; i < (r + 1) * width; i += 16) {
      const Floats<16> passed = leaky_relu.of_gradient(load_bf16(grad + i), load_bf16(out + i));
      store_bf16(gated + i, passed);
      float* sum = sums + (i - r * width);
      store<16>(sum, load<16>(sum) + passed);
    }
  }
}

}  // namespace
}  // namespace welkin::ops
