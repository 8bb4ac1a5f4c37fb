// SPDX-License-Identifier: Apache-2.0
// Convolutions with few channels on the fine grid, as in the U-Net's first and last layer: matmuls tap by tap would be
// too small for a tile. Fine to coarse, the inputs of all taps of a coarse voxel are gathered into one column. Coarse to fine,
// one matmul makes the outputs for all its taps, which are scattered afterwards. Coarse boxes are channels-last; weights are
// (taps, fine channels, coarse channels), float.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ops/convolution/convolution_cpu.h"
#include "ops/convolution/padded_box.h"

namespace welkin::ops {

// result (coarse voxels) = epilogue of columns times weights (depth(), its channels) at `row_stride`.
template <typename T, typename S>
void narrow_matmuls(const ConvolutionGeometry& convolution, const PaddedBox<T>& fine, const float* weights, int64_t row_stride,
                    const Epilogue& end, const ResultLines<S>& result);

// Channels of the coarse voxels, and their weights (kernel[0], channels, scatter_width(...)) at `plane_stride`.
template <typename T>
struct ScatterPart {
  BoxView<T> box;
  const float* weights = nullptr;
  int64_t plane_stride = 0;
};
// Width of a matmul for the taps of one plane, padded to whole vectors.
int64_t scatter_width(const ConvolutionGeometry& convolution, int64_t fine_channels);

// A box (B, channels, D, H, W) that kernels write, which may be a part of a larger one.
template <typename S>
struct ResultPlanes {
  S* data = nullptr;
  std::array<int64_t, 4> strides{};  // elements; voxels of a line are neighbours
};

// result of the fine grid = epilogue of all matmuls, scattered.
template <typename T, typename S>
void narrow_results(const ConvolutionGeometry& convolution, const std::vector<ScatterPart<T>>& parts, const Epilogue& end,
                    int64_t channels, const ResultPlanes<S>& result);

// sum (fine.depth(), coarse channels) at `row_stride` = the sum over coarse voxels of column times channels.
template <typename T>
void narrow_outers(const ConvolutionGeometry& convolution, const PaddedBox<T>& fine, const BoxView<T>& coarse, float* sum,
                   int64_t row_stride);

}  // namespace welkin::ops
