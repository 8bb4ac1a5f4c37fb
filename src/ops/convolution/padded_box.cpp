// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution/padded_box.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>

#include "ops/cpu/convolution/convolution_kernel.h"
#include "ops/cpu/lanes/bf16.h"

namespace welkin::ops {
namespace padded_box_detail {

// Copies `bytes` and up to kGatherBytes - 1 more: calls for short copies of unknown length are slow.
void copy_over(char* to, const char* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += kGatherBytes) std::memcpy(to + i, from + i, kGatherBytes);
}

// Interleaves `count` voxels of channels that are `channel_stride` apart; a fixed number of channels makes vector code.
template <int C, typename T>
void weave_rows(const T* from, int64_t channel_stride, int64_t count, T* to) {
  for (int64_t w = 0; w < count; ++w) {
    for (int c = 0; c < C; ++c) to[w * C + c] = from[c * channel_stride + w];
  }
}

template <typename T>
void weave(const T* from, int64_t channel_stride, int64_t voxel_stride, int64_t count, int64_t channels, T* to) {
  if (channel_stride == 1 && voxel_stride == channels) {
    std::copy_n(from, count * channels, to);
    return;
  }
  if (voxel_stride == 1 && channels == 4) return weave_rows<4>(from, channel_stride, count, to);
  if (voxel_stride == 1 && channels == 5) return weave_rows<5>(from, channel_stride, count, to);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t w = 0; w < count; ++w) {
      to[w * channels + c] = from[c * channel_stride + w * voxel_stride];
    }
  }
}

}  // namespace padded_box_detail

using namespace padded_box_detail;

template <typename T>
PaddedBox<T>::PaddedBox(const ConvolutionGeometry& convolution, const NarrowBox<T>& from)
    : convolution_(convolution),
      channels_(from.channels),
      depth_(padded(convolution.num_taps() * from.channels, kChannelMultiple)) {
  for (size_t a = 0; a < kBoxAxes; ++a) edges_[a] = (convolution.coarse[a] - 1) * convolution.stride[a] + convolution.kernel[a];
  const int64_t line = edges_[2] * channels_;
  const int64_t lines = convolution.batch * edges_[0] * edges_[1];
  T* data = data_.reserve(lines * line + kGatherBytes);
  std::memset(static_cast<void*>(data + lines * line), 0, kGatherBytes * sizeof(T));
  at::parallel_for(0, lines, 64, [&](int64_t begin, int64_t end) {
    for (int64_t l = begin; l < end; ++l) {
      T* to = data + l * line;
      std::memset(static_cast<void*>(to), 0, static_cast<size_t>(line) * sizeof(T));
      const int64_t h = l % edges_[1] - convolution.padding[1];
      const int64_t d = l / edges_[1] % edges_[0] - convolution.padding[0];
      if (d < 0 || d >= convolution.fine[0] || h < 0 || h >= convolution.fine[1]) continue;
      const T* row = from.data + l / edges_[1] / edges_[0] * from.strides[0] + d * from.strides[2] + h * from.strides[3];
      const int64_t last = std::min(edges_[2] - convolution.padding[2], convolution.fine[2]);
      weave(row, from.strides[1], from.strides[4], last, channels_, to + convolution.padding[2] * channels_);
    }
  });
}

template <typename T>
const T* PaddedBox<T>::row(int64_t voxel) const {
  const BoxShape& coarse = convolution_.coarse;
  const int64_t o2 = voxel % coarse[2] * convolution_.stride[2];
  const int64_t o1 = voxel / coarse[2] % coarse[1] * convolution_.stride[1];
  const int64_t o0 = voxel / coarse[2] / coarse[1] % coarse[0] * convolution_.stride[0];
  const int64_t sample = voxel / coarse[2] / coarse[1] / coarse[0];
  return data_.data() + (((sample * edges_[0] + o0) * edges_[1] + o1) * edges_[2] + o2) * channels_;
}

template <typename T>
std::vector<int64_t> PaddedBox<T>::offsets() const {
  std::vector<int64_t> all;
  for (int64_t k0 = 0; k0 < convolution_.kernel[0]; ++k0) {
    for (int64_t k1 = 0; k1 < convolution_.kernel[1]; ++k1) all.push_back((k0 * edges_[1] + k1) * edges_[2] * channels_);
  }
  return all;
}

template <typename T>
void PaddedBox<T>::columns(int64_t first, int64_t count, T* to) const {
  const BoxShape& coarse = convolution_.coarse;
  const int64_t segment = convolution_.kernel[2] * channels_;
  const int64_t filled = convolution_.num_taps() * channels_;
  for (int64_t v = first; v < first + count; ++v, to += depth_) {
    const int64_t o2 = v % coarse[2];
    const int64_t o1 = v / coarse[2] % coarse[1];
    const int64_t o0 = v / coarse[2] / coarse[1] % coarse[0];
    const int64_t sample = v / coarse[2] / coarse[1] / coarse[0];
    T* at = to;
    for (int64_t k0 = 0; k0 < convolution_.kernel[0]; ++k0) {
      const int64_t plane = sample * edges_[0] + o0 * convolution_.stride[0] + k0;
      for (int64_t k1 = 0; k1 < convolution_.kernel[1]; ++k1, at += segment) {
        const int64_t line = plane * edges_[1] + o1 * convolution_.stride[1] + k1;
        const T* from = data_.data() + (line * edges_[2] + o2 * convolution_.stride[2]) * channels_;
        copy_over(reinterpret_cast<char*>(at), reinterpret_cast<const char*>(from), segment * static_cast<int64_t>(sizeof(T)));
      }
    }
    for (int64_t i = filled; i < depth_; ++i) to[i] = T{};
  }
}

template class PaddedBox<float>;
template class PaddedBox<Bf16>;

}  // namespace welkin::ops
