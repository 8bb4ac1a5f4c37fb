// SPDX-License-Identifier: Apache-2.0
// Convolutions of bfloat16. Weight gradients sum over voxels, whose pairs are not adjacent: they are interleaved first.
#include "ops/cpu/convolution/convolution_bf16.h"

namespace welkin::ops {
namespace {

// Interleaves rows i and i + 1; `second` may be absent.
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

}  // namespace

const ConvolutionKernel<Bf16>& convolution_kernel_avx512bf16() {
  static constexpr ConvolutionKernel<Bf16> kKernel{pack_bf16,     add_rows<16, Bf16>, segment_rows<16, Bf16>, sum_outer_bf16,
                                                   activate_bf16, gate_bf16,          scatter_line<16>};
  return kKernel;
}

}  // namespace welkin::ops
