// SPDX-License-Identifier: Apache-2.0
// Tasks are ranges of coarse voxels, or planes of the fine grid; all divisions depend only on the shapes.
#include "ops/convolution/convolution_narrow.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>

#include "ops/cpu/convolution/convolution_kernel.h"

namespace welkin::ops {
namespace narrow_detail {

constexpr int64_t kColumnsPerTask = 128;  // their columns and results stay in the second-level cache
constexpr int64_t kColumnsPerSum = 2048;  // at least, of a partial sum of weight gradients
constexpr int64_t kMostPartialSums = 16;

int64_t voxels_of(const ConvolutionGeometry& convolution, const BoxShape& box) {
  return convolution.batch * box[0] * box[1] * box[2];
}

// Scratch memory of a thread, kept between calls.
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

namespace narrow_detail {

// Short columns are read in place, and results are finished in registers.
template <typename T, typename S>
void segment_matmuls(const ConvolutionKernel<T, S>& kernel, const PaddedBox<T>& fine, const PackedPanels<T>& panels,
                     const Epilogue& end, int64_t voxels, const ResultLines<S>& result) {
  const int64_t width = result.channels;
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
          to[static_cast<size_t>(i)] = result.at(begin + i) + column;
        }
        kernel.segment_rows(left.data(), segments, count, panels.at(0, column), end.bias == nullptr ? nullptr : end.bias + column,
                            end.slope, to.data(), std::min(kChannelPanel, width - column));
      }
    }
  });
}

}  // namespace narrow_detail

template <typename T, typename S>
void narrow_matmuls(const ConvolutionGeometry& convolution, const PaddedBox<T>& fine, const float* weights, int64_t row_stride,
                    const Epilogue& end, const ResultLines<S>& result) {
  const int64_t width = result.channels;
  const ConvolutionKernel<T, S>& kernel = *convolution_kernel<T, S>(instruction_set());
  const PackedPanels<T> panels(kernel, weights, row_stride, fine.depth(), width);
  const int64_t voxels = voxels_of(convolution, convolution.coarse);
  if (fine.depth() <= kLongestColumn && fine.segment() % 2 == 0) {
    segment_matmuls(kernel, fine, panels, end, voxels, result);
    return;
  }
  at::parallel_for(0, ceil_div(voxels, kColumnsPerTask), 1, [&](int64_t first, int64_t last) {
    NarrowScratch<T>& scratch = narrow_scratch<T>();
    T* columns = scratch.columns.reserve(kColumnsPerTask * fine.depth() + kGatherBytes);
    float* sums = scratch.sums.reserve(kColumnsPerTask * padded(width, kChannelPanel));
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
      if (result.is_whole) {
        kernel.activate(sums, end.slope, count * width, result.at(begin));
      } else {
        for (int64_t i = 0; i < count; ++i) kernel.activate(sums + i * width, end.slope, width, result.at(begin + i));
      }
    }
  });
}

int64_t scatter_width(const ConvolutionGeometry& convolution, int64_t fine_channels) {
  return padded(convolution.kernel[1] * convolution.kernel[2] * fine_channels, kChannelMultiple);
}

namespace narrow_detail {

// One plane of the fine grid: the matmuls of the coarse planes that reach it, scattered into a plane that extends as far as the
// taps.
template <typename T, typename S>
struct PlaneScatter {
  const ConvolutionGeometry& convolution;
  const std::vector<ScatterPart<T>>& parts;
  const std::vector<std::vector<PackedPanels<T>>>& panels;  // by part and k0
  int64_t channels;
  const ConvolutionKernel<T, S>& kernel = *convolution_kernel<T, S>(instruction_set());

  int64_t width() const { return scatter_width(convolution, channels); }
  int64_t line() const { return ((convolution.coarse[2] - 1) * convolution.stride[2] + convolution.kernel[2]) * channels; }

  void scatter_line(const float* matmuls, int64_t o1, float* plane) const {
    const int64_t segment = convolution.kernel[2] * channels;
    for (int64_t k1 = 0; k1 < convolution.kernel[1]; ++k1) {
      const int64_t h = o1 * convolution.stride[1] - convolution.padding[1] + k1;
      if (h < 0 || h >= convolution.fine[1]) continue;
      kernel.scatter(matmuls + k1 * segment, {convolution.coarse[2], width(), segment, convolution.stride[2] * channels},
                     plane + h * line());
    }
  }

  void add_coarse_plane(int64_t sample, int64_t o0, int64_t k0, float* plane) const {
    NarrowScratch<T>& scratch = narrow_scratch<T>();
    const int64_t length = convolution.coarse[2];
    const int64_t lines = std::max<int64_t>(1, kColumnsPerTask / length);
    float* matmuls = scratch.sums.reserve(lines * length * padded(width(), kChannelPanel));
    scratch.left.resize(static_cast<size_t>(lines * length));
    scratch.to.resize(static_cast<size_t>(lines * length));
    for (int64_t o1 = 0; o1 < convolution.coarse[1]; o1 += lines) {
      const int64_t now = std::min(lines, convolution.coarse[1] - o1);
      const int64_t first = ((sample * convolution.coarse[0] + o0) * convolution.coarse[1] + o1) * length;
      std::fill_n(matmuls, now * length * width(), 0.0F);
      for (size_t p = 0; p < parts.size(); ++p) {
        for (int64_t i = 0; i < now * length; ++i) {
          scratch.left[static_cast<size_t>(i)] = parts[p].box.data + (first + i) * parts[p].box.channels;
          scratch.to[static_cast<size_t>(i)] = matmuls + i * width();
        }
        panels[p][static_cast<size_t>(k0)].add_rows(kernel, scratch.left, scratch.to, now * length);
      }
      for (int64_t l = 0; l < now; ++l) scatter_line(matmuls + l * length * width(), o1 + l, plane);
    }
  }

  void finish(const float* plane, const Epilogue& end, int64_t sample, int64_t d, const ResultPlanes<S>& result) const {
    const BoxShape& fine = convolution.fine;
    // Nothing if the padding is longer than the line.
    const int64_t line_end = std::max<int64_t>(0, line() / channels - convolution.padding[2]);
    const auto reached = static_cast<size_t>(std::min(fine[2], line_end));
    const int64_t vectors = padded(fine[2], kChannelMultiple);
    std::vector<float> row(static_cast<size_t>(vectors));
    std::vector<S> bent(static_cast<size_t>(vectors));
    for (int64_t c = 0; c < channels; ++c) {
      const float bias = end.bias == nullptr ? 0.0F : end.bias[c];
      const auto& strides = result.strides;
      S* to = result.data + sample * strides[0] + c * strides[1] + d * strides[2];
      for (int64_t h = 0; h < fine[1]; ++h, to += strides[3]) {
        const float* from = plane + h * line() + convolution.padding[2] * channels + c;
        for (size_t w = 0; w < reached; ++w) row[w] = from[static_cast<int64_t>(w) * channels] + bias;
        std::fill(row.begin() + static_cast<std::ptrdiff_t>(reached), row.end(), bias);
        kernel.activate(row.data(), end.slope, vectors, bent.data());
        std::copy_n(bent.data(), fine[2], to);
      }
    }
  }

  void run(int64_t sample, int64_t d, const Epilogue& end, const ResultPlanes<S>& result) const {
    const int64_t size = convolution.fine[1] * line();
    float* plane = narrow_scratch<T>().plane.reserve(size);
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
void narrow_results(const ConvolutionGeometry& convolution, const std::vector<ScatterPart<T>>& parts, const Epilogue& end,
                    int64_t channels, const ResultPlanes<S>& result) {
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

namespace narrow_detail {

// Partial sums (depth, coarse channels) over one range of coarse voxels, which are added to `to`.
template <typename T>
void sum_columns(const ConvolutionKernel<T>& kernel, const PaddedBox<T>& fine, const BoxView<T>& coarse, int64_t first,
                 int64_t end, float* to) {
  NarrowScratch<T>& scratch = narrow_scratch<T>();
  T* columns = scratch.columns.reserve(kPairBlock * fine.depth() + kGatherBytes);
  scratch.left.resize(kPairBlock);
  scratch.right.resize(kPairBlock);
  std::fill_n(to, fine.depth() * coarse.channels, 0.0F);
  for (int64_t begin = first; begin < end; begin += kPairBlock) {
    const int64_t count = std::min(kPairBlock, end - begin);
    fine.columns(begin, count, columns);
    for (int64_t row = 0; row < fine.depth(); row += kChannelPanel) {
      for (int64_t column = 0; column < coarse.channels; column += kChannelPanel) {
        for (int64_t i = 0; i < count; ++i) {
          scratch.left[static_cast<size_t>(i)] = columns + i * fine.depth() + row;
          scratch.right[static_cast<size_t>(i)] = coarse.data + (begin + i) * coarse.channels + column;
        }
        kernel.sum_outer(scratch.left.data(), scratch.right.data(), count, to + row * coarse.channels + column, coarse.channels,
                         std::min(kChannelPanel, fine.depth() - row), std::min(kChannelPanel, coarse.channels - column), true);
      }
    }
  }
}

// The same for a kernel that transposes the coarse side; sums are transposed, panel by panel of the depth.
template <typename T>
void sum_transposed_columns(const TransposedOuter<T>& kernel, const PaddedBox<T>& fine, const BoxView<T>& coarse, int64_t first,
                            int64_t end, float* to) {
  NarrowScratch<T>& scratch = narrow_scratch<T>();
  T* columns = scratch.columns.reserve(kTransposedVoxels * fine.depth() + kGatherBytes);
  T* transposed = scratch.panel.reserve(coarse.channels * kTransposedRow + kTransposedVoxels * kChannelPanel);
  T* interleaved = transposed + coarse.channels * kTransposedRow;
  float* sums = scratch.sums.reserve(fine.depth() * coarse.channels);
  scratch.left.resize(kTransposedVoxels);
  for (int64_t begin = first; begin < end; begin += kTransposedVoxels) {
    const int64_t count = std::min(kTransposedVoxels, end - begin);
    fine.columns(begin, count, columns);
    for (int64_t i = 0; i < count; ++i) scratch.left[static_cast<size_t>(i)] = coarse.data + (begin + i) * coarse.channels;
    kernel.transpose(scratch.left.data(), count, coarse.channels, transposed);
    for (int64_t row = 0; row < fine.depth(); row += kChannelPanel) {
      const int64_t width = std::min(kChannelPanel, fine.depth() - row);
      for (int64_t i = 0; i < count; ++i) scratch.left[static_cast<size_t>(i)] = columns + i * fine.depth() + row;
      kernel.interleave(scratch.left.data(), count, width, interleaved);
      kernel.multiply(transposed, interleaved, count, sums + row * coarse.channels, coarse.channels, width, begin > first);
    }
  }
  for (int64_t row = 0; row < fine.depth(); row += kChannelPanel) {
    kernel.transpose_back(sums + row * coarse.channels, coarse.channels, std::min(kChannelPanel, fine.depth() - row),
                          to + row * coarse.channels, coarse.channels);
  }
}

}  // namespace narrow_detail

template <typename T>
void narrow_outers(const ConvolutionGeometry& convolution, const PaddedBox<T>& fine, const BoxView<T>& coarse, float* sum,
                   int64_t row_stride) {
  const ConvolutionKernel<T>& kernel = *convolution_kernel<T>(instruction_set());
  const int64_t voxels = voxels_of(convolution, convolution.coarse);
  const int64_t ranges = std::clamp<int64_t>(ceil_div(voxels, kColumnsPerSum), 1, kMostPartialSums);
  const int64_t range = padded(ceil_div(voxels, ranges), kernel.transposed != nullptr ? kTransposedVoxels : kPairBlock);
  const int64_t used = ceil_div(voxels, range);
  const int64_t size = fine.depth() * coarse.channels;
  const AlignedBuffer<float> partial(used * size);
  at::parallel_for(0, used, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      float* to = partial.data() + task * size;
      const int64_t end = std::min((task + 1) * range, voxels);
      if (kernel.transposed != nullptr) {
        sum_transposed_columns(*kernel.transposed, fine, coarse, task * range, end, to);
      } else {
        sum_columns(kernel, fine, coarse, task * range, end, to);
      }
    }
  });
  for (int64_t row = 0; row < fine.depth(); ++row) {
    float* to = sum + row * row_stride;
    std::fill_n(to, coarse.channels, 0.0F);
    for (int64_t r = 0; r < used; ++r) {
      const float* from = partial.data() + r * size + row * coarse.channels;
      for (int64_t c = 0; c < coarse.channels; ++c) to[c] += from[c];
    }
  }
}

template void narrow_matmuls(const ConvolutionGeometry&, const PaddedBox<float>&, const float*, int64_t, const Epilogue&,
                             const ResultLines<float>&);
template void narrow_matmuls(const ConvolutionGeometry&, const PaddedBox<float>&, const float*, int64_t, const Epilogue&,
                             const ResultLines<Bf16>&);
template void narrow_matmuls(const ConvolutionGeometry&, const PaddedBox<Bf16>&, const float*, int64_t, const Epilogue&,
                             const ResultLines<Bf16>&);
using FloatScatterParts = std::vector<ScatterPart<float>>;
using Bf16ScatterParts = std::vector<ScatterPart<Bf16>>;
template void narrow_results(const ConvolutionGeometry&, const FloatScatterParts&, const Epilogue&, int64_t,
                             const ResultPlanes<float>&);
template void narrow_results(const ConvolutionGeometry&, const FloatScatterParts&, const Epilogue&, int64_t,
                             const ResultPlanes<Bf16>&);
template void narrow_results(const ConvolutionGeometry&, const Bf16ScatterParts&, const Epilogue&, int64_t,
                             const ResultPlanes<Bf16>&);
template void narrow_outers<float>(const ConvolutionGeometry&, const PaddedBox<float>&, const BoxView<float>&, float*, int64_t);
template void narrow_outers<Bf16>(const ConvolutionGeometry&, const PaddedBox<Bf16>&, const BoxView<Bf16>&, float*, int64_t);

}  // namespace welkin::ops
