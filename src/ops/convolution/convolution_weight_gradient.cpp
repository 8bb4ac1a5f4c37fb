// SPDX-License-Identifier: Apache-2.0
// Tasks are rows of taps along the last axis, blocks of coarse channels and panels of fine ones. Each sums over all voxels in
// one order, independent of the division.
#include "ops/convolution/convolution_weight_gradient.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "ops/base/aligned_buffer.h"

namespace welkin::ops {
namespace turned_detail {

constexpr int64_t kMostCoarse =
    512;  // channels of a task: the transposed rows and the sums of four taps stay in the second-level cache
constexpr int64_t kLeastCoarse = 64;
constexpr int64_t kAllVoxels = 0;       // the one group of a coarse grid
constexpr int64_t kTasksPerThread = 4;  // at least, if blocks of kLeastCoarse give them

template <typename T>
struct TransposedScratch {
  std::vector<int64_t> voxels;
  std::vector<const T*> coarse;             // rows of the voxels of a step
  std::vector<std::vector<const T*>> fine;  // by tap: their partners, or null
  AlignedBuffer<T> transposed, interleaved;
  AlignedBuffer<float> sums;
};

template <typename T>
TransposedScratch<T>& transposed_scratch() {
  static thread_local TransposedScratch<T> scratch;
  return scratch;
}

template <typename T>
struct TransposedSums {
  const TransposedOuter<T>& kernel;
  const ConvolutionGeometry& convolution;
  const TapGroups& groups;
  BoxView<T> coarse, fine;
  bool coarse_rows;  // true: coarse channels are the rows of the result; false: its columns
  TapSums sum;

  size_t taps() const { return static_cast<size_t>(convolution.kernel[2]); }

  // Finds the rows of the voxels in some lines. Returns true for each tap that any of them has.
  std::vector<bool> find_rows(int64_t first_tap, int64_t first_line, int64_t last_line, int64_t channel, int64_t column,
                              TransposedScratch<T>& scratch) const {
    groups.voxels(kAllVoxels, first_line, last_line, scratch.voxels);
    find_partner_rows(coarse, channel, scratch.voxels, scratch.coarse);
    scratch.fine.resize(taps());
    std::vector<bool> has(taps());
    for (size_t k = 0; k < taps(); ++k) {
      groups.partners(kAllVoxels, first_tap + static_cast<int64_t>(k), first_line, last_line, scratch.voxels);
      has[k] = find_partner_rows(fine, column, scratch.voxels, scratch.fine[k]);
    }
    return has;
  }

  void run(int64_t first_tap, int64_t channel, int64_t channels, int64_t column) const {
    TransposedScratch<T>& scratch = transposed_scratch<T>();
    const int64_t width = std::min(kChannelPanel, fine.channels - column);
    T* transposed = scratch.transposed.reserve(channels * kTransposedRow);
    T* interleaved = scratch.interleaved.reserve(kTransposedVoxels * width);
    float* sums = scratch.sums.reserve(convolution.kernel[2] * channels * width);
    const int64_t lines = std::max<int64_t>(1, kTransposedVoxels / groups.line_length());
    std::vector<bool> begun(taps());
    for (int64_t line = 0; line < groups.num_lines(); line += lines) {
      const int64_t last_line = std::min(line + lines, groups.num_lines());
      const std::vector<bool> has = find_rows(first_tap, line, last_line, channel, column, scratch);
      if (std::find(has.begin(), has.end(), true) == has.end()) continue;
      const int64_t voxels = (last_line - line) * groups.line_length();
      for (int64_t begin = 0; begin < voxels; begin += kTransposedVoxels) {  // a line may be longer
        const int64_t count = std::min(kTransposedVoxels, voxels - begin);
        kernel.transpose(scratch.coarse.data() + begin, count, channels, transposed);
        for (size_t k = 0; k < taps(); ++k) {
          if (!has[k]) continue;
          kernel.interleave(scratch.fine[k].data() + begin, count, width, interleaved);
          kernel.multiply(transposed, interleaved, count, sums + static_cast<int64_t>(k) * channels * width, channels, width,
                          begun[k]);
          begun[k] = true;
        }
      }
    }
    for (size_t k = 0; k < taps(); ++k) {
      const auto tap = static_cast<int64_t>(k);
      float* of_tap = sums + tap * channels * width;
      if (!begun[k]) std::fill_n(of_tap, channels * width, 0.0F);  // a tap without voxels
      put(of_tap, first_tap + tap, channel, channels, column, width);
    }
  }

  void put(const float* of_tap, int64_t tap, int64_t channel, int64_t channels, int64_t column, int64_t width) const {
    float* to = sum.data + tap * sum.tap_stride;
    if (!coarse_rows) {
      kernel.transpose_back(of_tap, channels, width, to + column * sum.row_stride + channel, sum.row_stride);
      return;
    }
    for (int64_t c = 0; c < channels; ++c) std::copy_n(of_tap + c * width, width, to + (channel + c) * sum.row_stride + column);
  }
};

}  // namespace turned_detail

using namespace turned_detail;

template <typename T>
void sum_transposed_outers(const TransposedOuter<T>& kernel, const ConvolutionGeometry& convolution, Grid left_grid,
                           const BoxView<T>& left, const BoxView<T>& right, const TapSums& sum) {
  const TapGroups groups(convolution, Grid::Coarse);
  const bool coarse_rows = left_grid == Grid::Coarse;
  const TransposedSums<T> sums{kernel,      convolution, groups, coarse_rows ? left : right, coarse_rows ? right : left,
                               coarse_rows, sum};
  const int64_t planes = convolution.kernel[0] * convolution.kernel[1];
  const int64_t panels = ceil_div(sums.fine.channels, kChannelPanel);
  int64_t block = kMostCoarse;
  while (block > kLeastCoarse &&
         planes * panels * ceil_div(sums.coarse.channels, block) < kTasksPerThread * at::get_num_threads()) {
    block /= 2;
  }
  const int64_t blocks = ceil_div(sums.coarse.channels, block);
  at::parallel_for(0, planes * blocks * panels, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t channel = task / panels % blocks * block;
      sums.run(task / panels / blocks * convolution.kernel[2], channel, std::min(block, sums.coarse.channels - channel),
               task % panels * kChannelPanel);
    }
  });
}

template void sum_transposed_outers<float>(const TransposedOuter<float>&, const ConvolutionGeometry&, Grid, const BoxView<float>&,
                                           const BoxView<float>&, const TapSums&);
template void sum_transposed_outers<Bf16>(const TransposedOuter<Bf16>&, const ConvolutionGeometry&, Grid, const BoxView<Bf16>&,
                                          const BoxView<Bf16>&, const TapSums&);

}  // namespace welkin::ops
