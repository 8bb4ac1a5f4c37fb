// SPDX-License-Identifier: Apache-2.0
// Strided 3-D convolutions on a CPU by our own kernels (ops/cpu/). Aten's reach 5 to 20 % of the machine's rate where boxes are
// small and channels many, since they lay the weights out anew in every call; ours reads them tap by tap as they are stored, and
// skips taps on the padding. Boxes are channels-last, (B, D, H, W, C) in memory; float32; results do not depend on the number of
// threads.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/convolution_grid.h"

namespace welkin::ops {

// Channel vectors of a grid's voxels: memory (batch, axes..., channels).
struct BoxView {
  const float* data = nullptr;
  int64_t channels = 0;
};

// weight (taps, depth, width) as stored; or (taps, width, depth) to be read transposed.
struct TapWeights {
  const float* data = nullptr;
  int64_t depth = 0;
  int64_t width = 0;
  bool transposed = false;
};

bool convolution_cpu_takes(const at::Tensor& x, const at::Tensor& weight, int64_t in_channels, int64_t out_channels);

// result (voxels of `of`, width) += for every tap, the partner voxels' channels (depth) times the tap's weights.
void add_tap_products(const BoxConvolution& convolution, Grid of, const BoxView& partner, const TapWeights& weights,
                      float* result);

// sum (taps, left channels, right channels) = over all pairs, the coarse or fine voxel's `left` channels times the other's
// `right`.
void sum_tap_outers(const BoxConvolution& convolution, Grid left_grid, const BoxView& left, const BoxView& right, float* sum);

}  // namespace welkin::ops
