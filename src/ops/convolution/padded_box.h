// SPDX-License-Identifier: Apache-2.0
// The fine grid of a convolution with few channels, as operand of matmuls: the inputs of a coarse voxel's taps are one column.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ops/base/aligned_buffer.h"
#include "ops/convolution/convolution_grid.h"

namespace welkin::ops {

inline constexpr int64_t kGatherBytes = 16;  // columns are copied in pieces of this size

// A fine box with any strides: batch, channel, three axes; elements.
template <typename T>
struct NarrowBox {
  const T* data = nullptr;
  int64_t channels = 0;
  std::array<int64_t, 5> strides{};
};

// The fine box as kernels read it: channels-last, with zero voxels where taps reach over its edges, so that the inputs of one
// plane's taps along the last axis are contiguous.
template <typename T>
class PaddedBox {
 public:
  PaddedBox(const ConvolutionGeometry& convolution, const NarrowBox<T>& from);

  int64_t channels() const { return channels_; }
  // The columns of coarse voxels [first, first + count), numbered through batch and axes: `depth()` elements each, zero behind
  // taps * channels. Writes up to 16 bytes more.
  void columns(int64_t first, int64_t count, T* to) const;
  int64_t depth() const { return depth_; }

  // The same column in place: pieces of segment() elements at row(voxel) plus each of offsets().
  const T* row(int64_t voxel) const;
  std::vector<int64_t> offsets() const;
  int64_t segment() const { return convolution_.kernel[2] * channels_; }

 private:
  const ConvolutionGeometry& convolution_;
  int64_t channels_, depth_;
  BoxShape edges_;
  AlignedBuffer<T> data_;
};

}  // namespace welkin::ops
