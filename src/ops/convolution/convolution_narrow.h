// SPDX-License-Identifier: Apache-2.0
// Convolutions whose fine grid has few channels, as the U-Net's first layer and its last have: tap by tap their matmuls would be
// too small for a tile. What all taps of a coarse voxel read is gathered into one column (fine to coarse), and what it gives to
// all its taps is one matmul that is scattered afterwards (coarse to fine). Coarse boxes are channels-last; weights are
// (taps, fine channels, coarse channels), float.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/convolution/convolution_cpu.h"
#include "ops/convolution/padded_box.h"

namespace welkin::ops {

// result (coarse voxels, width) = the end of columns times weights (depth(), width) at `row_stride`.
template <typename T, typename S>
void narrow_matmuls(const ConvolutionGeometry& convolution, const PaddedBox<T>& fine, const float* weights, int64_t row_stride,
                    const Epilogue& end, int64_t width, S* result);

// Channels of the coarse voxels, and their weights (kernel[0], channels, scatter_width(...)) at `plane_stride`.
template <typename T>
struct ScatterPart {
  BoxView<T> box;
  const float* weights = nullptr;
  int64_t plane_stride = 0;
};
// What the taps of one plane take of a matmul, padded to whole vectors.
int64_t scatter_width(const ConvolutionGeometry& convolution, int64_t fine_channels);

// result (B, channels, D, H, W) of the fine grid = the end of all matmuls, scattered.
template <typename T, typename S>
void narrow_results(const ConvolutionGeometry& convolution, const std::vector<ScatterPart<T>>& parts, const Epilogue& end,
                    int64_t channels, S* result);

// sum (fine.depth(), coarse channels) at `row_stride` = the sum over coarse voxels of column times channels.
template <typename T>
void narrow_outers(const ConvolutionGeometry& convolution, const PaddedBox<T>& fine, const BoxView<T>& coarse, float* sum,
                   int64_t row_stride);

}  // namespace welkin::ops
