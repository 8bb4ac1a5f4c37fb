// SPDX-License-Identifier: Apache-2.0
// Tasks are ranges of coarse voxels, or planes of the fine grid; all divisions follow from the shapes.
#include "ops/convolution_narrow.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "ops/cpu/convolution_kernel.h"

namespace welkin::ops {
namespace narrow_detail {

constexpr int64_t kColumnsPerTask = 128;  // their columns and results stay in the second-level cache
constexpr int64_t kColumnsPerSum = 2048;  // at least, of a partial sum of weight gradients
constexpr int64_t kMostPartialSums = 16;
constexpr int64_t kGatherBytes = 16;
constexpr int64_t kLongestColumn = 512;  // that is summed at once; of longer ones the sum is made of short ones

int64_t padded(int64_t x, int64_t multiple) { return ceil_div(x, multiple) * multiple; }

int64_t voxels_of(const BoxConvolution& convolution, const BoxShape& box) { return convolution.batch * box[0] * box[1] * box[2]; }

// `bytes` and up to kGatherBytes - 1 more: short copies of unknown length are slow as calls.
void copy_over(char* to, const char* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += kGatherBytes) std::memcpy(to + i, from + i, kGatherBytes);
}

// `count` voxels of channels that lie `channel_stride` apart, side by side; a fixed number of channels in rows is vector code.
template <int C, typename From, typename T>
void weave_rows(const From* from, int64_t channel_stride, int64_t count, T* to) {
  for (int64_t w = 0; w < count; ++w) {
    for (int c = 0; c < C; ++c) to[w * C + c] = rounded_to<T>(to_float(from[c * channel_stride + w]));
  }
}

template <typename From, typename T>
void weave(const From* from, int64_t channel_stride, int64_t voxel_stride, int64_t count, int64_t channels, T* to) {
  if (voxel_stride == 1 && channels == 4) return weave_rows<4>(from, channel_stride, count, to);
  if (voxel_stride == 1 && channels == 5) return weave_rows<5>(from, channel_stride, count, to);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t w = 0; w < count; ++w) {
      to[w * channels + c] = rounded_to<T>(to_float(from[c * channel_stride + w * voxel_stride]));
    }
  }
}

// Memory of a thread, kept between calls.
template <typename T>
struct NarrowScratch {
  AlignedBuffer<T> columns, panel;
  AlignedBuffer<float> sums, plane;
  std::vector<const T*> left, right;
  std::vector<float*> to;
};

template <typename T>
NarrowScratch<T>& narrow_scratch() {
  static thread_local NarrowScratch<T> scratch;
  return scratch;
}

// All panels of a weight (depth, width), packed in blocks of depth.
template <typename T>
class PackedPanels {
 public:
  template <typename S>
  PackedPanels(const ConvolutionKernel<T, S>& kernel, const float* weights, int64_t row_stride, int64_t depth, int64_t width)
      : depth_(depth), width_(width), data_(depth * padded(width, kChannelPanel)) {
    for (int64_t column = 0; column < width; column += kChannelPanel) {
      for (int64_t begin = 0; begin < depth; begin += kDepthBlock) {
        kernel.pack({weights + begin * row_stride + column, row_stride, 1}, std::min(kDepthBlock, depth - begin),
                    std::min(kChannelPanel, width - column), at(begin, column));
      }
    }
  }
  T* at(int64_t begin, int64_t column) const {
    return data_.data() + column * depth_ + begin * std::min(kChannelPanel, width_ - column);
  }

  // result[i] + column += left[i] times the panels.
  template <typename S>
  void add_rows(const ConvolutionKernel<T, S>& kernel, std::vector<const T*>& left, std::vector<float*>& result,
                int64_t count) const {
    const auto rows = static_cast<size_t>(count);
    for (int64_t begin = 0; begin < depth_; begin += kDepthBlock) {
      for (int64_t column = 0; column < width_; column += kChannelPanel) {
        kernel.add_rows(left.data(), result.data(), count, at(begin, column), std::min(kDepthBlock, depth_ - begin),
                        std::min(kChannelPanel, width_ - column));
        for (size_t i = 0; i < rows; ++i) result[i] += kChannelPanel;
      }
      for (size_t i = 0; i < rows; ++i) {
        left[i] += kDepthBlock;
        result[i] -= padded(width_, kChannelPanel);
      }
    }
  }

 private:
  int64_t depth_, width_;
  AlignedBuffer<T> data_;
};

}  // namespace narrow_detail

using namespace narrow_detail;

template <typename T>
template <typename From>
PaddedBox<T>::PaddedBox(const BoxConvolution& convolution, const NarrowBox<From>& from)
    : convolution_(convolution),
      channels_(from.channels),
      depth_(padded(convolution.num_taps() * from.channels, kChannelMultiple)) {
  for (size_t a = 0; a < kBoxAxes; ++a) edges_[a] = (convolution.coarse[a] - 1) * convolution.stride[a] + convolution.kernel[a];
  const int64_t line = edges_[2] * channels_;
  const int64_t lines = convolution.batch * edges_[0] * edges_[1];
  T* data = data_.room(lines * line + kGatherBytes);
  std::memset(static_cast<void*>(data + lines * line), 0, kGatherBytes * sizeof(T));
  at::parallel_for(0, lines, 64, [&](int64_t begin, int64_t end) {
    for (int64_t l = begin; l < end; ++l) {
      T* to = data + l * line;
      std::memset(static_cast<void*>(to), 0, static_cast<size_t>(line) * sizeof(T));
      const int64_t h = l % edges_[1] - convolution.padding[1];
      const int64_t d = l / edges_[1] % edges_[0] - convolution.padding[0];
      if (d < 0 || d >= convolution.fine[0] || h < 0 || h >= convolution.fine[1]) continue;
      const From* row = from.data + l / edges_[1] / edges_[0] * from.strides[0] + d * from.strides[2] + h * from.strides[3];
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

namespace narrow_detail {

// Columns that are short enough are read where they lie, and the results are finished in registers.
template <typename T, typename S>
void segment_products(const ConvolutionKernel<T, S>& kernel, const PaddedBox<T>& fine, const PackedPanels<T>& panels,
                      const ConvolutionEnd& end, int64_t voxels, int64_t width, S* result) {
  const std::vector<int64_t> offsets = fine.offsets();
  const Segments segments{offsets.data(), static_cast<int64_t>(offsets.size()), fine.segment()};
  at::parallel_for(0, ceil_div(voxels, kColumnsPerTask), 1, [&](int64_t first, int64_t last) {
    std::array<const T*, kColumnsPerTask> left{};
    std::array<S*, kColumnsPerTask> to{};
    for (int64_t begin = first * kColumnsPerTask; begin < std::min(last * kColumnsPerTask, voxels); begin += kColumnsPerTask) {
      const int64_t count = std::min(kColumnsPerTask, voxels - begin);
      for (int64_t column = 0; column < width; column += kChannelPanel) {
        for (int64_t i = 0; i < count; ++i) {
          left[static_cast<size_t>(i)] = fine.row(begin + i);
          to[static_cast<size_t>(i)] = result + (begin + i) * width + column;
        }
        kernel.segment_rows(left.data(), segments, count, panels.at(0, column), end.bias == nullptr ? nullptr : end.bias + column,
                            end.slope, to.data(), std::min(kChannelPanel, width - column));
      }
    }
  });
}

}  // namespace narrow_detail

template <typename T, typename S>
void narrow_products(const BoxConvolution& convolution, const PaddedBox<T>& fine, const float* weights, int64_t row_stride,
                     const ConvolutionEnd& end, int64_t width, S* result) {
  const ConvolutionKernel<T, S>& kernel = *convolution_kernel<T, S>(instruction_set());
  const PackedPanels<T> panels(kernel, weights, row_stride, fine.depth(), width);
  const int64_t voxels = voxels_of(convolution, convolution.coarse);
  if (fine.depth() <= kLongestColumn && fine.segment() % 2 == 0) {
    segment_products(kernel, fine, panels, end, voxels, width, result);
    return;
  }
  at::parallel_for(0, ceil_div(voxels, kColumnsPerTask), 1, [&](int64_t first, int64_t last) {
    NarrowScratch<T>& scratch = narrow_scratch<T>();
    T* columns = scratch.columns.room(kColumnsPerTask * fine.depth() + kGatherBytes);
    float* sums = scratch.sums.room(kColumnsPerTask * padded(width, kChannelPanel));
    scratch.left.resize(kColumnsPerTask);
    scratch.to.resize(kColumnsPerTask);
    for (int64_t task = first; task < last; ++task) {
      const int64_t begin = task * kColumnsPerTask;
      const int64_t count = std::min(kColumnsPerTask, voxels - begin);
      fine.columns(begin, count, columns);
      for (int64_t i = 0; i < count; ++i) {
        const auto row = static_cast<size_t>(i);
        scratch.left[row] = columns + i * fine.depth();
        scratch.to[row] = sums + i * width;
        if (end.bias == nullptr) {
          std::fill_n(scratch.to[row], width, 0.0F);
        } else {
          std::copy_n(end.bias, width, scratch.to[row]);
        }
      }
      panels.add_rows(kernel, scratch.left, scratch.to, count);
      kernel.activate(sums, end.slope, count * width, result + begin * width);
    }
  });
}

int64_t scatter_width(const BoxConvolution& convolution, int64_t fine_channels) {
  return padded(convolution.kernel[1] * convolution.kernel[2] * fine_channels, kChannelMultiple);
}

namespace narrow_detail {

// One plane of the fine grid: the products of the coarse planes that reach it, scattered into a plane that is as long as the taps
// reach.
template <typename T, typename S>
struct PlaneScatter {
  const BoxConvolution& convolution;
  const std::vector<ScatterPart<T>>& parts;
  const std::vector<std::vector<PackedPanels<T>>>& panels;  // by part and k0
  int64_t channels;
  const ConvolutionKernel<T, S>& kernel = *convolution_kernel<T, S>(instruction_set());

  int64_t width() const { return scatter_width(convolution, channels); }
  int64_t line() const { return ((convolution.coarse[2] - 1) * convolution.stride[2] + convolution.kernel[2]) * channels; }

  void scatter_line(const float* products, int64_t o1, float* plane) const {
    const int64_t segment = convolution.kernel[2] * channels;
    for (int64_t k1 = 0; k1 < convolution.kernel[1]; ++k1) {
      const int64_t h = o1 * convolution.stride[1] - convolution.padding[1] + k1;
      if (h < 0 || h >= convolution.fine[1]) continue;
      float* to = plane + h * line();
      for (int64_t o2 = 0; o2 < convolution.coarse[2]; ++o2) {
        const float* from = products + o2 * width() + k1 * segment;
        float* at = to + o2 * convolution.stride[2] * channels;
        for (int64_t i = 0; i < segment; ++i) at[i] += from[i];
      }
    }
  }

  void add_coarse_plane(int64_t sample, int64_t o0, int64_t k0, float* plane) const {
    NarrowScratch<T>& scratch = narrow_scratch<T>();
    const int64_t length = convolution.coarse[2];
    const int64_t lines = std::max<int64_t>(1, kColumnsPerTask / length);
    float* products = scratch.sums.room(lines * length * padded(width(), kChannelPanel));
    scratch.left.resize(static_cast<size_t>(lines * length));
    scratch.to.resize(static_cast<size_t>(lines * length));
    for (int64_t o1 = 0; o1 < convolution.coarse[1]; o1 += lines) {
      const int64_t now = std::min(lines, convolution.coarse[1] - o1);
      const int64_t first = ((sample * convolution.coarse[0] + o0) * convolution.coarse[1] + o1) * length;
      std::fill_n(products, now * length * width(), 0.0F);
      for (size_t p = 0; p < parts.size(); ++p) {
        for (int64_t i = 0; i < now * length; ++i) {
          scratch.left[static_cast<size_t>(i)] = parts[p].box.data + (first + i) * parts[p].box.channels;
          scratch.to[static_cast<size_t>(i)] = products + i * width();
        }
        panels[p][static_cast<size_t>(k0)].add_rows(kernel, scratch.left, scratch.to, now * length);
      }
      for (int64_t l = 0; l < now; ++l) scatter_line(products + l * length * width(), o1 + l, plane);
    }
  }

  void finish(const float* plane, const ConvolutionEnd& end, int64_t sample, int64_t d, S* result) const {
    const BoxShape& fine = convolution.fine;
    const int64_t reached = std::min(fine[2], line() / channels - convolution.padding[2]);
    for (int64_t c = 0; c < channels; ++c) {
      const float bias = end.bias == nullptr ? 0.0F : end.bias[c];
      S* to = result + ((sample * channels + c) * fine[0] + d) * fine[1] * fine[2];
      for (int64_t h = 0; h < fine[1]; ++h, to += fine[2]) {
        const float* from = plane + h * line() + convolution.padding[2] * channels + c;
        for (int64_t w = 0; w < fine[2]; ++w) {
          const float x = (w < reached ? from[w * channels] : 0.0F) + bias;
          to[w] = rounded_to<S>(x > 0 ? x : x * end.slope);
        }
      }
    }
  }

  void run(int64_t sample, int64_t d, const ConvolutionEnd& end, S* result) const {
    const int64_t size = convolution.fine[1] * line();
    float* plane = narrow_scratch<T>().plane.room(size);
    std::fill_n(plane, size, 0.0F);
    for (int64_t k0 = 0; k0 < convolution.kernel[0]; ++k0) {
      const int64_t reach = d + convolution.padding[0] - k0;
      const int64_t o0 = reach / convolution.stride[0];
      if (reach < 0 || reach % convolution.stride[0] != 0 || o0 >= convolution.coarse[0]) continue;
      add_coarse_plane(sample, o0, k0, plane);
    }
    finish(plane, end, sample, d, result);
  }
};

}  // namespace narrow_detail

template <typename T, typename S>
void narrow_results(const BoxConvolution& convolution, const std::vector<ScatterPart<T>>& parts, const ConvolutionEnd& end,
                    int64_t channels, S* result) {
  const ConvolutionKernel<T, S>& kernel = *convolution_kernel<T, S>(instruction_set());
  const int64_t width = scatter_width(convolution, channels);
  std::vector<std::vector<PackedPanels<T>>> panels(parts.size());
  for (size_t p = 0; p < parts.size(); ++p) {
    for (int64_t k0 = 0; k0 < convolution.kernel[0]; ++k0) {
      panels[p].emplace_back(kernel, parts[p].weights + k0 * parts[p].plane_stride, width, parts[p].box.channels, width);
    }
  }
  const PlaneScatter<T, S> scatter{convolution, parts, panels, channels};
  at::parallel_for(0, convolution.batch * convolution.fine[0], 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      scatter.run(task / convolution.fine[0], task % convolution.fine[0], end, result);
    }
  });
}

template <typename T>
void narrow_outers(const BoxConvolution& convolution, const PaddedBox<T>& fine, const BoxView<T>& coarse, float* sum,
                   int64_t row_stride) {
  const ConvolutionKernel<T>& kernel = *convolution_kernel<T>(instruction_set());
  const int64_t voxels = voxels_of(convolution, convolution.coarse);
  const int64_t ranges = std::clamp<int64_t>(ceil_div(voxels, kColumnsPerSum), 1, kMostPartialSums);
  const int64_t range = padded(ceil_div(voxels, ranges), kPairBlock);
  const int64_t size = fine.depth() * coarse.channels;
  const AlignedBuffer<float> partial(ranges * size);
  at::parallel_for(0, ranges, 1, [&](int64_t first, int64_t last) {
    NarrowScratch<T>& scratch = narrow_scratch<T>();
    T* columns = scratch.columns.room(kPairBlock * fine.depth() + kGatherBytes);
    scratch.left.resize(kPairBlock);
    scratch.right.resize(kPairBlock);
    for (int64_t task = first; task < last; ++task) {
      float* to = partial.data() + task * size;
      std::fill_n(to, size, 0.0F);
      const int64_t end = std::min((task + 1) * range, voxels);
      for (int64_t begin = task * range; begin < end; begin += kPairBlock) {
        const int64_t count = std::min(kPairBlock, end - begin);
        fine.columns(begin, count, columns);
        for (int64_t row = 0; row < fine.depth(); row += kChannelPanel) {
          for (int64_t column = 0; column < coarse.channels; column += kChannelPanel) {
            for (int64_t i = 0; i < count; ++i) {
              scratch.left[static_cast<size_t>(i)] = columns + i * fine.depth() + row;
              scratch.right[static_cast<size_t>(i)] = coarse.data + (begin + i) * coarse.channels + column;
            }
            kernel.sum_outer(scratch.left.data(), scratch.right.data(), count, to + row * coarse.channels + column,
                             coarse.channels, std::min(kChannelPanel, fine.depth() - row),
                             std::min(kChannelPanel, coarse.channels - column), true);
          }
        }
      }
    }
  });
  for (int64_t row = 0; row < fine.depth(); ++row) {
    float* to = sum + row * row_stride;
    std::fill_n(to, coarse.channels, 0.0F);
    for (int64_t r = 0; r < ranges; ++r) {
      const float* from = partial.data() + r * size + row * coarse.channels;
      for (int64_t c = 0; c < coarse.channels; ++c) to[c] += from[c];
    }
  }
}

template class PaddedBox<float>;
template class PaddedBox<Bf16>;
template PaddedBox<float>::PaddedBox(const BoxConvolution&, const NarrowBox<float>&);
template PaddedBox<Bf16>::PaddedBox(const BoxConvolution&, const NarrowBox<Bf16>&);
template void narrow_products(const BoxConvolution&, const PaddedBox<float>&, const float*, int64_t, const ConvolutionEnd&,
                              int64_t, float*);
template void narrow_products(const BoxConvolution&, const PaddedBox<float>&, const float*, int64_t, const ConvolutionEnd&,
                              int64_t, Bf16*);
template void narrow_products(const BoxConvolution&, const PaddedBox<Bf16>&, const float*, int64_t, const ConvolutionEnd&,
                              int64_t, Bf16*);
using FloatScatterParts = std::vector<ScatterPart<float>>;
template void narrow_results(const BoxConvolution&, const FloatScatterParts&, const ConvolutionEnd&, int64_t, float*);
template void narrow_results(const BoxConvolution&, const FloatScatterParts&, const ConvolutionEnd&, int64_t, Bf16*);
template void narrow_results(const BoxConvolution&, const std::vector<ScatterPart<Bf16>>&, const ConvolutionEnd&, int64_t, Bf16*);
template void narrow_outers<float>(const BoxConvolution&, const PaddedBox<float>&, const BoxView<float>&, float*, int64_t);
template void narrow_outers<Bf16>(const BoxConvolution&, const PaddedBox<Bf16>&, const BoxView<Bf16>&, float*, int64_t);

}  // namespace welkin::ops
