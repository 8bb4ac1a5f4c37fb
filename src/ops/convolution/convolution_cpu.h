// SPDX-License-Identifier: Apache-2.0
// Strided 3-D convolutions on a CPU by our own kernels (ops/cpu/). Aten's reach 5 to 20 % of the machine's rate where boxes are
// small and channels many, since they lay the weights out anew in every call; ours reads them tap by tap as they are stored, and
// skips taps on the padding. Boxes are channels-last, (B, D, H, W, C) in memory: operands of matmuls of type T, what comes out
// of type S (ConvolutionKernel's); weights, biases and sums are float; results do not depend on the number of threads. Torch-free
// but for its threads.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/convolution/convolution_grid.h"
#include "ops/cpu/lanes/bf16.h"

namespace welkin::ops {

// Channel vectors of a grid's voxels: memory (batch, axes..., channels).
template <typename T>
struct BoxView {
  const T* data = nullptr;
  int64_t channels = 0;
};

// Rows of these voxels from a channel on; null for what is beyond an edge (-1). Returns whether there is any.
template <typename T>
bool find_partner_rows(const BoxView<T>& box, int64_t channel, const std::vector<int64_t>& voxels, std::vector<const T*>& rows) {
  rows.resize(voxels.size());
  bool any = false;
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = voxels[i] < 0 ? nullptr : box.data + voxels[i] * box.channels + channel;
    any = any || voxels[i] >= 0;
  }
  return any;
}

// Element (tap, k, n) of a weight; one of the last two strides is 1.
struct TapWeights {
  const float* data = nullptr;
  int64_t tap_stride = 0, depth_stride = 0, width_stride = 0;
};

// A range of the channels that are summed over, and its weights. Several parts stand for a concatenation that is never made.
template <typename T>
struct ConvolutionPart {
  BoxView<T> box;
  TapWeights weights;
};

// What becomes of a sum: x + bias where that is positive, slope times it elsewhere.
struct Epilogue {
  const float* bias = nullptr;  // per channel; or none
  float slope = 1.0F;
};

// result (voxels of `of`, width) = the end of the sum, over parts and taps, of the partner voxels' channels times the weights.
// Channels and width are multiples of kChannelMultiple.
template <typename T, typename S>
void tap_matmuls(const ConvolutionGeometry& convolution, Grid of, const std::vector<ConvolutionPart<T>>& parts,
                 const Epilogue& end, int64_t width, S* result);

struct TapSums {
  float* data = nullptr;
  int64_t tap_stride = 0, row_stride = 0;
};

// sum (taps, left channels, right channels) = over all pairs, the coarse or fine voxel's `left` channels times the other's
// `right`.
template <typename T>
void sum_tap_outers(const ConvolutionGeometry& convolution, Grid left_grid, const BoxView<T>& left, const BoxView<T>& right,
                    const TapSums& sum);

// gated (voxels, channels) = the gradient before the activation, from that after it and the result; sums (channels) = its sum
// over the voxels.
template <typename T, typename S>
void gate_gradient(const S* grad, const S* out, float slope, int64_t voxels, int64_t channels, T* gated, float* sums);

}  // namespace welkin::ops
