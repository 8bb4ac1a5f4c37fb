// SPDX-License-Identifier: Apache-2.0
// Convolutions whose fine grid has few channels, as the U-Net's first layer and its last have: tap by tap their products would be
// too small for a tile. What all taps of a coarse voxel read is gathered into one column (fine to coarse), and what it gives to
// all its taps is one product that is scattered afterwards (coarse to fine). Coarse boxes are channels-last; weights are
// (taps, fine channels, coarse channels), float.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ops/aligned_buffer.h"
#include "ops/convolution_cpu.h"

namespace welkin::ops {

// A fine box with any strides: batch, channel, three axes; elements.
template <typename From>
struct NarrowBox {
  const From* data = nullptr;
  int64_t channels = 0;
  std::array<int64_t, 5> strides{};
};

// The fine box as kernels read it: channels-last, with zero voxels where taps reach over its edges, so that what the taps of one
// plane along the last axis read is contiguous.
template <typename T>
class PaddedBox {
 public:
  template <typename From>
  PaddedBox(const BoxConvolution& convolution, const NarrowBox<From>& from);

  int64_t channels() const { return channels_; }
  // The column of coarse voxels [first, first + count), numbered through batch and axes: for each `depth()` elements, zero behind
  // taps * channels; writes up to 16 bytes more.
  void columns(int64_t first, int64_t count, T* to) const;
  int64_t depth() const { return depth_; }

  // The same column where it lies: pieces of segment() elements at row(voxel) plus each of offsets().
  const T* row(int64_t voxel) const;
  std::vector<int64_t> offsets() const;
  int64_t segment() const { return convolution_.kernel[2] * channels_; }

 private:
  const BoxConvolution& convolution_;
  int64_t channels_, depth_;
  BoxShape edges_;
  AlignedBuffer<T> data_;
};

// result (coarse voxels, width) = the end of columns times weights (depth(), width) at `row_stride`.
template <typename T, typename S>
void narrow_products(const BoxConvolution& convolution, const PaddedBox<T>& fine, const float* weights, int64_t row_stride,
                     const ConvolutionEnd& end, int64_t width, S* result);

// Channels of the coarse voxels, and their weights (kernel[0], channels, scatter_width(...)) at `plane_stride`.
template <typename T>
struct ScatterPart {
  BoxView<T> box;
  const float* weights = nullptr;
  int64_t plane_stride = 0;
};
// What the taps of one plane take of a product, padded to whole vectors.
int64_t scatter_width(const BoxConvolution& convolution, int64_t fine_channels);

// result (B, channels, D, H, W) of the fine grid = the end of all products, scattered.
template <typename T, typename S>
void narrow_results(const BoxConvolution& convolution, const std::vector<ScatterPart<T>>& parts, const ConvolutionEnd& end,
                    int64_t channels, S* result);

// sum (fine.depth(), coarse channels) at `row_stride` = the sum over coarse voxels of column times channels.
template <typename T>
void narrow_outers(const BoxConvolution& convolution, const PaddedBox<T>& fine, const BoxView<T>& coarse, float* sum,
                   int64_t row_stride);

}  // namespace welkin::ops
