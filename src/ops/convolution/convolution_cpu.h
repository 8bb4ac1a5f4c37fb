// SPDX-License-Identifier: Apache-2.0
// Strided 3-D convolutions on a CPU by our own kernels (ops/cpu/). For small boxes with many channels aten's reach 5 to 20 % of
// the machine's rate, since they repack the weights in every call. Ours read the weights tap by tap as they are stored, and
// skip taps on the padding. Boxes are channels-last, (B, D, H, W, C) in memory. Operands of matmuls have type T, results type S
// (see ConvolutionKernel); weights, biases and sums are float. Results do not depend on the number of threads. Torch-free
// except for its threads.
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

// Finds the rows of these voxels from a channel on; null for voxels beyond an edge (-1). Returns true if there is any.
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

// A channels-last box that kernels write, which may be a part of a larger one.
template <typename S>
struct ResultLines {
  S* data = nullptr;
  int64_t channels = 0;
  BoxShape box{};
  BoxShape strides{};    // elements from sample to sample, and along the first two axes; voxels of a line are neighbours
  bool is_whole = true;  // true: all voxels are neighbours

  // The channels of a voxel, counted through batch and axes.
  S* at(int64_t voxel) const {
    if (is_whole) return data + voxel * channels;
    const int64_t line = voxel / box[2], plane = line / box[1];
    return data + plane / box[0] * strides[0] + plane % box[0] * strides[1] + line % box[1] * strides[2] +
           voxel % box[2] * channels;
  }
};

// Element (tap, k, n) of a weight; one of the last two strides is 1.
struct TapWeights {
  const float* data = nullptr;
  int64_t tap_stride = 0, depth_stride = 0, width_stride = 0;
};

// A range of the summed channels, and its weights. Several parts represent a concatenation that is never made.
template <typename T>
struct ConvolutionPart {
  BoxView<T> box;
  TapWeights weights;
};

// The end of a sum: x + bias if that is positive, slope times it otherwise.
struct Epilogue {
  const float* bias = nullptr;  // per channel; or none
  float slope = 1.0F;
};

// result (voxels of `of`) = epilogue of the sum, over parts and taps, of the partner voxels' channels times the weights.
// Channels are multiples of kChannelMultiple, or of kFloatMultiple for float operands.
template <typename T, typename S>
void tap_matmuls(const ConvolutionGeometry& convolution, Grid of, const std::vector<ConvolutionPart<T>>& parts,
                 const Epilogue& end, const ResultLines<S>& result);

struct TapSums {
  float* data = nullptr;
  int64_t tap_stride = 0, row_stride = 0;
};

// sum (taps, left channels, right channels) = over all pairs, the coarse or fine voxel's `left` channels times the other's
// `right`.
template <typename T>
void sum_tap_outers(const ConvolutionGeometry& convolution, Grid left_grid, const BoxView<T>& left, const BoxView<T>& right,
                    const TapSums& sum);

// gated (voxels, channels) = the gradient before the activation, from the gradient after it and the result; sums (channels) =
// its sum over the voxels.
template <typename T, typename S>
void gate_gradient(const S* grad, const S* out, float slope, int64_t voxels, int64_t channels, T* gated, float* sums);

}  // namespace welkin::ops
