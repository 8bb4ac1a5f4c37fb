// SPDX-License-Identifier: Apache-2.0
// How the products of a convolution are shared out: results by ranges of lines and panels of channels, weight gradients by taps
// and blocks of channels. No two tasks write the same number, and each sums in one order.
#include "ops/convolution_cpu.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "ops/cpu/convolution_kernel.h"

namespace welkin::ops {
namespace {

constexpr int64_t kPairsPerTask =
    512;  // of one tap: enough to pay for packing its weights; the results stay in the second-level cache
constexpr int64_t kPairsPerBlock = 64;  // of an outer sum: that many rows of both panels stay in the first-level cache
constexpr int64_t kOuterRows = 64;      // channels of the left operand per task

// What a thread needs while it works; kept between calls.
struct ConvolutionScratch {
  std::vector<int64_t> results, partners;
  std::vector<const float*> left, right;
  std::vector<float*> to;
  std::vector<float> panel;

  // Room for the pairs of so many lines.
  void reserve(int64_t pairs) {
    const auto size = static_cast<size_t>(pairs);
    if (results.size() >= size) return;
    results.resize(size);
    partners.resize(size);
    left.resize(size);
    right.resize(size);
    to.resize(size);
  }
};

ConvolutionScratch& convolution_scratch() {
  static thread_local ConvolutionScratch scratch;
  return scratch;
}

// Rows [begin, begin + depth) and columns [column, column + width) of a tap's matrix, densely.
void pack_panel(const TapWeights& weights, int64_t tap, int64_t begin, int64_t depth, int64_t column, int64_t width, float* to) {
  const float* tap_data = weights.data + tap * weights.depth * weights.width;
  if (!weights.transposed) {
    for (int64_t k = 0; k < depth; ++k) std::copy_n(tap_data + (begin + k) * weights.width + column, width, to + k * width);
    return;
  }
  constexpr int64_t kTile = 16;  // reads and writes both stay in a few cache lines
  for (int64_t k0 = 0; k0 < depth; k0 += kTile) {
    for (int64_t n0 = 0; n0 < width; n0 += kTile) {
      for (int64_t k = k0; k < std::min(k0 + kTile, depth); ++k) {
        for (int64_t n = n0; n < n0 + kTile; ++n) to[k * width + n] = tap_data[(column + n) * weights.depth + begin + k];
      }
    }
  }
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

void add_panel_of_lines(const BoxConvolution& convolution, const TapPairs& pairs, int64_t first_line, int64_t last_line,
                        const BoxView& partner, const TapWeights& weights, int64_t column, float* result) {
  const ConvolutionKernel& kernel = convolution_kernel(instruction_set());
  ConvolutionScratch& scratch = convolution_scratch();
  const int64_t width = std::min(kChannelPanel, weights.width - column);
  scratch.panel.resize(static_cast<size_t>(kDepthBlock * kChannelPanel));
  scratch.reserve((last_line - first_line) * pairs.line_length());
  for (int64_t tap = 0; tap < convolution.num_taps(); ++tap) {
    const auto count =
        static_cast<size_t>(pairs.list(tap, first_line, last_line, scratch.results.data(), scratch.partners.data()));
    if (count == 0) continue;
    for (size_t i = 0; i < count; ++i) scratch.to[i] = result + scratch.results[i] * weights.width + column;
    for (int64_t begin = 0; begin < weights.depth; begin += kDepthBlock) {
      const int64_t depth = std::min(kDepthBlock, weights.depth - begin);
      pack_panel(weights, tap, begin, depth, column, width, scratch.panel.data());
      for (size_t i = 0; i < count; ++i) scratch.left[i] = partner.data + scratch.partners[i] * partner.channels + begin;
      kernel.add_rows(scratch.left.data(), scratch.to.data(), static_cast<int64_t>(count), scratch.panel.data(), depth, width);
    }
  }
}

// One plane of taps along the last axis, a block of left channels, a panel of right channels.
void sum_outer_block(const BoxConvolution& convolution, const TapPairs& pairs, int64_t first_tap, Grid left_grid,
                     const BoxView& left, const BoxView& right, int64_t row, int64_t column, float* sum) {
  const ConvolutionKernel& kernel = convolution_kernel(instruction_set());
  ConvolutionScratch& scratch = convolution_scratch();
  const int64_t rows = std::min(kOuterRows, left.channels - row);
  const int64_t width = std::min(kChannelPanel, right.channels - column);
  const int64_t step = std::max<int64_t>(1, kPairsPerBlock / pairs.line_length());
  scratch.reserve(step * pairs.line_length());
  const std::vector<int64_t>& of_left = left_grid == Grid::Coarse ? scratch.results : scratch.partners;
  const std::vector<int64_t>& of_right = left_grid == Grid::Coarse ? scratch.partners : scratch.results;
  std::vector<bool> begun(static_cast<size_t>(convolution.kernel[2]), false);
  for (int64_t line = 0; line < pairs.num_lines(); line += step) {
    for (int64_t k = 0; k < convolution.kernel[2]; ++k) {
      const auto count = static_cast<size_t>(pairs.list(first_tap + k, line, std::min(line + step, pairs.num_lines()),
                                                        scratch.results.data(), scratch.partners.data()));
      if (count == 0) continue;
      for (size_t i = 0; i < count; ++i) {
        scratch.left[i] = left.data + of_left[i] * left.channels + row;
        scratch.right[i] = right.data + of_right[i] * right.channels + column;
      }
      float* to = sum + ((first_tap + k) * left.channels + row) * right.channels + column;
      kernel.sum_outer(scratch.left.data(), scratch.right.data(), static_cast<int64_t>(count), to, right.channels, rows, width,
                       begun[static_cast<size_t>(k)]);
      begun[static_cast<size_t>(k)] = true;
    }
  }
  for (int64_t k = 0; k < convolution.kernel[2]; ++k) {
    if (begun[static_cast<size_t>(k)]) continue;  // a tap that no voxel has
    for (int64_t r = row; r < row + rows; ++r) {
      std::fill_n(sum + ((first_tap + k) * left.channels + r) * right.channels + column, width, 0.0F);
    }
  }
}

}  // namespace

bool convolution_cpu_takes(const at::Tensor& x, const at::Tensor& weight, int64_t in_channels, int64_t out_channels) {
  return x.device().is_cpu() && x.dim() == 5 && x.scalar_type() == at::kFloat && weight.scalar_type() == at::kFloat &&
         x.numel() > 0 && in_channels % kChannelMultiple == 0 && out_channels % kChannelMultiple == 0;
}

void add_tap_products(const BoxConvolution& convolution, Grid of, const BoxView& partner, const TapWeights& weights,
                      float* result) {
  const TapPairs pairs(convolution, of);
  // A voxel of the fine grid has a partner for one tap in stride^3; half of that is asked for, or a task would leave the cache.
  const int64_t taps_apart =
      of == Grid::Fine ? std::max<int64_t>(1, convolution.stride[0] * convolution.stride[1] * convolution.stride[2] / 2) : 1;
  const int64_t lines_per_task = std::max<int64_t>(1, kPairsPerTask * taps_apart / pairs.line_length());
  const int64_t ranges = ceil_div(pairs.num_lines(), lines_per_task);
  const int64_t panels = ceil_div(weights.width, kChannelPanel);
  at::parallel_for(0, ranges * panels, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t line = task / panels * lines_per_task;
      add_panel_of_lines(convolution, pairs, line, std::min(line + lines_per_task, pairs.num_lines()), partner, weights,
                         task % panels * kChannelPanel, result);
    }
  });
}

void sum_tap_outers(const BoxConvolution& convolution, Grid left_grid, const BoxView& left, const BoxView& right, float* sum) {
  const TapPairs pairs(convolution, Grid::Coarse);
  const int64_t planes = convolution.kernel[0] * convolution.kernel[1];
  const int64_t blocks = ceil_div(left.channels, kOuterRows);
  const int64_t panels = ceil_div(right.channels, kChannelPanel);
  at::parallel_for(0, planes * blocks * panels, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      sum_outer_block(convolution, pairs, task / panels / blocks * convolution.kernel[2], left_grid, left, right,
                      task / panels % blocks * kOuterRows, task % panels * kChannelPanel, sum);
    }
  });
}

}  // namespace welkin::ops
