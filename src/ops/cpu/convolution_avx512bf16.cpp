// SPDX-License-Identifier: Apache-2.0
// Convolutions of bfloat16. Weight gradients sum over voxels, whose pairs do not lie side by side: they are interleaved first.
#include "ops/cpu/bf16_dot.h"
#include "ops/cpu/convolution_tiles.h"

namespace welkin::ops {
namespace {

// A row behind the last of an odd depth does not exist: callers give an even one.
void pack_rows_bf16(const WeightMatrix& from, int64_t depth, int64_t width, Bf16* to) {
  for (int64_t k = 0; k < depth; k += 2, to += 2 * width) {
    const float* row = from.data + k * from.depth_stride;
    for (int64_t n = 0; n < width; n += 16) {
      _mm512_storeu_si512(to + 2 * n, interleaved(to_bf16(load<16>(row + n)), to_bf16(load<16>(row + from.depth_stride + n))));
    }
  }
}

// Depth lies side by side: sixteen pairs of each column at a time, one word per pair.
void pack_columns_bf16(const WeightMatrix& from, int64_t depth, int64_t width, Bf16* to) {
  constexpr int64_t kPairs = 16;
  for (int64_t k0 = 0; k0 < depth; k0 += 2 * kPairs) {
    const int64_t pairs = (depth - k0) / 2 < kPairs ? (depth - k0) / 2 : kPairs;
    for (int64_t n = 0; n < width; ++n) {
      const float* column = from.data + n * from.width_stride + k0;
      alignas(64) Bf16 rounded[2 * kPairs];
      for (int64_t k = 0; k < 2 * pairs; k += 16) store_bf16(rounded + k, load<16>(column + k));
      for (int64_t p = 0; p < pairs; ++p) std::memcpy(to + (k0 / 2 + p) * 2 * width + 2 * n, rounded + 2 * p, 2 * sizeof(Bf16));
    }
  }
}

void pack_bf16(const WeightMatrix& from, int64_t depth, int64_t width, Bf16* to) {
  if (from.width_stride == 1) return pack_rows_bf16(from, depth, width, to);
  pack_columns_bf16(from, depth, width, to);
}

// Rows i and i + 1 interleaved; `second` may be absent.
void interleave_rows(const Bf16* first, const Bf16* second, int64_t width, Bf16* to) {
  for (int64_t n = 0; n < width; n += 16) {
    _mm512_storeu_si512(to + 2 * n, interleaved(load_halves(first + n), second != nullptr ? load_halves(second + n) : Halves{}));
  }
}

constexpr int64_t kOuterChannels = 64;  // of either side, interleaved at a time

void sum_outer_bf16(const Bf16* const* left, const Bf16* const* right, int64_t count, float* sum, int64_t stride, int64_t rows,
                    int64_t width, bool add) {
  alignas(64) Bf16 left_pairs[kPairBlock * kOuterChannels];
  alignas(64) Bf16 right_pairs[kPairBlock * kOuterChannels];
  const Bf16* left_rows[kPairBlock / 2];
  const Bf16* right_rows[kPairBlock / 2];
  for (int64_t i = 0; i < count; i += 2) {
    Bf16* to_left = left_pairs + i * kOuterChannels;
    Bf16* to_right = right_pairs + i * kOuterChannels;
    interleave_rows(left[i], i + 1 < count ? left[i + 1] : nullptr, rows, to_left);
    interleave_rows(right[i], i + 1 < count ? right[i + 1] : nullptr, width, to_right);
    left_rows[i / 2] = to_left;
    right_rows[i / 2] = to_right;
  }
  sum_outer<16, Bf16>(left_rows, right_rows, (count + 1) / 2, sum, stride, rows, width, add);
}

void activate_bf16(const float* x, float slope, int64_t count, Bf16* to) {
  for (int64_t i = 0; i < count; i += 16) {
    const Floats<16> value = load<16>(x + i);
    store_bf16(to + i, value > Floats<16>{} ? value : value * slope);
  }
}

void gate_bf16(const Bf16* grad, const Bf16* out, float slope, int64_t rows, int64_t width, Bf16* gated, float* sums) {
  for (int64_t n = 0; n < width; ++n) sums[n] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = r * width; i < (r + 1) * width; i += 16) {
      const Floats<16> value = load_bf16(grad + i);
      const Floats<16> passed = load_bf16(out + i) > Floats<16>{} ? value : value * slope;
      store_bf16(gated + i, passed);
      float* sum = sums + (i - r * width);
      store<16>(sum, load<16>(sum) + passed);
    }
  }
}

}  // namespace

const ConvolutionKernel<Bf16>& convolution_kernel_avx512bf16() {
  static constexpr ConvolutionKernel<Bf16> kKernel{pack_bf16,      add_rows<16, Bf16>, segment_rows<16, Bf16>,
                                                   sum_outer_bf16, activate_bf16,      gate_bf16};
  return kKernel;
}

}  // namespace welkin::ops
