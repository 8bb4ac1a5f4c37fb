// SPDX-License-Identifier: Apache-2.0
// Divides the matmuls of a convolution: results by ranges of lines and panels of channels, weight gradients by taps
// and blocks of channels. No two tasks write the same number, and each sums in a fixed order.
#include "ops/convolution/convolution_cpu.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <optional>

#include "ops/base/aligned_buffer.h"
#include "ops/convolution/convolution_gathered.h"
#include "ops/convolution/convolution_panels.h"
#include "ops/convolution/convolution_weight_gradient.h"
#include "ops/cpu/convolution/convolution_kernel.h"

namespace welkin::ops {
namespace tap_detail {

constexpr int64_t kPairsPerTask = 512;       // of one tap: enough to amortise its weights; the sums stay in the L2 cache
constexpr int64_t kSumsTogether = 32768;     // floats of the panels of a task
constexpr int64_t kSumsOfGathered = 131072;  // the same for gathered rows
constexpr int64_t kOuterRows = 64;           // channels of the left operand per task
constexpr int64_t kVoxelsPerGate = 1024;     // the gated gradient's sums over so many are added afterwards

// Scratch memory of a thread; kept between calls.
template <typename T>
struct ConvolutionScratch {
  std::vector<int64_t> results, partners;
  std::vector<const T*> left, right;
  std::vector<float*> to;
  AlignedBuffer<T> panel;
  AlignedBuffer<float> sums;

  // Makes room for so many pairs.
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

template <typename T>
ConvolutionScratch<T>& convolution_scratch() {
  static thread_local ConvolutionScratch<T> scratch;
  return scratch;
}

// State shared by the tasks of one matmul of boxes.
template <typename T, typename S>
struct TapMatmul {
  const ConvolutionGeometry& convolution;
  const TapPairs& pairs;
  const TapPanels<T, S>& panels;
  const ResultLines<S>& result;

  // Adds the matmuls of `count` pairs of one tap for a block of channels, panel by panel. Weights that are not packed are read
  // in place.
  void add_block(const ConvolutionPart<T>& part, int64_t tap, int64_t begin, int64_t depth_begin, PanelRange panels_of_task,
                 int64_t count, int64_t voxels, ConvolutionScratch<T>& scratch) const {
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      scratch.left[i] = part.box.data + scratch.partners[i] * part.box.channels + begin;
    }
    for (int64_t panel = panels_of_task.begin; panel < panels_of_task.end; ++panel) {
      const T* weights = scratch.panel.data();
      if (panels.packed.data() != nullptr) {
        weights = panels.packed_at(panel, tap, depth_begin + begin);
      } else {
        panels.pack(part, tap, begin, panel, scratch.panel.data());
      }
      const int64_t columns = panels.panel_width(panel);
      float* sums = scratch.sums.data() + panels.sums_at(panel - panels_of_task.begin, voxels);
      for (size_t i = 0; i < static_cast<size_t>(count); ++i) scratch.to[i] = sums + scratch.results[i] * columns;
      panels.kernel.add_rows(scratch.left.data(), scratch.to.data(), count, weights,
                             std::min(kDepthBlock, part.box.channels - begin), columns);
    }
  }

  void run_lines(int64_t first_line, int64_t last_line, PanelRange panels_of_task) const {
    ConvolutionScratch<T>& scratch = convolution_scratch<T>();
    const int64_t first_voxel = first_line * pairs.line_length();
    const int64_t voxels = (last_line - first_line) * pairs.line_length();
    scratch.panel.reserve(kDepthBlock * kChannelPanel);
    scratch.reserve(voxels);
    float* sums = scratch.sums.reserve(panels.sums_at(panels_of_task.size(), voxels));
    panels.begin_sums(panels_of_task, voxels, sums);
    for (int64_t tap = 0; tap < convolution.num_taps(); ++tap) {
      const int64_t count = pairs.list(tap, first_line, last_line, scratch.results.data(), scratch.partners.data());
      if (count == 0) continue;
      for (size_t i = 0; i < static_cast<size_t>(count); ++i) scratch.results[i] -= first_voxel;
      int64_t depth_begin = 0;
      for (const ConvolutionPart<T>& part : panels.parts) {
        for (int64_t begin = 0; begin < part.box.channels; begin += kDepthBlock) {
          add_block(part, tap, begin, depth_begin, panels_of_task, count, voxels, scratch);
        }
        depth_begin += part.box.channels;
      }
    }
    for (int64_t panel = panels_of_task.begin; panel < panels_of_task.end; ++panel) {
      const int64_t columns = panels.panel_width(panel);
      const float* from = sums + panels.sums_at(panel - panels_of_task.begin, voxels);
      for (int64_t v = 0; v < voxels; ++v)
        panels.kernel.activate(from + v * columns, panels.end.slope, columns, result.at(first_voxel + v) + panel * kChannelPanel);
    }
  }
};

// Panels per task. If each weight is read once, or rows are gathered for all panels, one task takes neighbouring panels,
// as long as their sums stay in the cache and every thread has work.
template <typename T, typename S>
int64_t panels_together(const TapPanels<T, S>& panels, int64_t ranges, int64_t voxels, bool pays) {
  if (!pays) return 1;
  const int64_t most = ranges == 1 ? kSumsTogether : kSumsOfGathered;
  const int64_t in_cache = std::max<int64_t>(1, most / (voxels * kChannelPanel));
  return std::clamp<int64_t>(panels.num_panels() * ranges / at::get_num_threads(), 1, std::min(in_cache, panels.num_panels()));
}

// One plane of taps along the last axis, a block of left channels, a panel of right channels.
template <typename T>
void sum_outer_block(const ConvolutionGeometry& convolution, const TapPairs& pairs, int64_t first_tap, Grid left_grid,
                     const BoxView<T>& left, const BoxView<T>& right, int64_t row, int64_t column, const TapSums& sum) {
  const ConvolutionKernel<T>& kernel = *convolution_kernel<T>(instruction_set());
  ConvolutionScratch<T>& scratch = convolution_scratch<T>();
  const int64_t rows = std::min(kOuterRows, left.channels - row);
  const int64_t width = std::min(kChannelPanel, right.channels - column);
  const int64_t step = std::max<int64_t>(1, kPairBlock / pairs.line_length());
  scratch.reserve(step * pairs.line_length());
  const std::vector<int64_t>& of_left = left_grid == Grid::Coarse ? scratch.results : scratch.partners;
  const std::vector<int64_t>& of_right = left_grid == Grid::Coarse ? scratch.partners : scratch.results;
  std::vector<bool> begun(static_cast<size_t>(convolution.kernel[2]), false);
  const auto to = [&](int64_t k) { return sum.data + (first_tap + k) * sum.tap_stride + row * sum.row_stride + column; };
  for (int64_t line = 0; line < pairs.num_lines(); line += step) {
    for (int64_t k = 0; k < convolution.kernel[2]; ++k) {
      const auto count = pairs.list(first_tap + k, line, std::min(line + step, pairs.num_lines()), scratch.results.data(),
                                    scratch.partners.data());
      for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
        scratch.left[i] = left.data + of_left[i] * left.channels + row;
        scratch.right[i] = right.data + of_right[i] * right.channels + column;
      }
      for (int64_t done = 0; done < count; done += kPairBlock) {  // a line may be longer than a block
        kernel.sum_outer(scratch.left.data() + done, scratch.right.data() + done, std::min(kPairBlock, count - done), to(k),
                         sum.row_stride, rows, width, begun[static_cast<size_t>(k)]);
        begun[static_cast<size_t>(k)] = true;
      }
    }
  }
  for (int64_t k = 0; k < convolution.kernel[2]; ++k) {
    if (begun[static_cast<size_t>(k)]) continue;  // a tap without voxels
    for (int64_t r = 0; r < rows; ++r) std::fill_n(to(k) + r * sum.row_stride, width, 0.0F);
  }
}

}  // namespace tap_detail

using namespace tap_detail;

template <typename T, typename S>
void tap_matmuls(const ConvolutionGeometry& convolution, Grid of, const std::vector<ConvolutionPart<T>>& parts,
                 const Epilogue& end, const ResultLines<S>& result) {
  const TapPairs pairs(convolution, of);
  TapPanels<T, S> panels{convolution, parts, end, result.channels};
  for (const ConvolutionPart<T>& part : parts) panels.depth += part.box.channels;
  // A voxel of the fine grid has a partner for one tap in stride^3. Half of that is assumed, so that a task stays in the cache.
  const int64_t taps_apart =
      of == Grid::Fine ? std::max<int64_t>(1, convolution.stride[0] * convolution.stride[1] * convolution.stride[2] / 2) : 1;
  const int64_t lines_per_task = std::max<int64_t>(1, kPairsPerTask * taps_apart / pairs.line_length());
  const int64_t ranges = ceil_div(pairs.num_lines(), lines_per_task);
  if (ranges > 1) panels.pack_all();
  const bool gathers = panels.kernel.gathered != nullptr;
  const int64_t voxels = std::min(lines_per_task, pairs.num_lines()) * pairs.line_length();
  const int64_t together = panels_together(panels, ranges, voxels, gathers || ranges == 1);
  const int64_t groups = ceil_div(panels.num_panels(), together);
  const auto tap_groups = gathers ? std::optional<TapGroups>(std::in_place, convolution, of) : std::nullopt;
  at::parallel_for(0, ranges * groups, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t line = task / groups * lines_per_task;
      const int64_t last_line = std::min(line + lines_per_task, pairs.num_lines());
      const int64_t panel = task % groups * together;
      const PanelRange range{panel, std::min(panel + together, panels.num_panels())};
      if (tap_groups) {
        gathered_matmuls(panels, *tap_groups, line, last_line, range, result);
      } else {
        TapMatmul<T, S>{convolution, pairs, panels, result}.run_lines(line, last_line, range);
      }
    }
  });
}

template <typename T>
void sum_tap_outers(const ConvolutionGeometry& convolution, Grid left_grid, const BoxView<T>& left, const BoxView<T>& right,
                    const TapSums& sum) {
  if (const TransposedOuter<T>* transposed = convolution_kernel<T>(instruction_set())->transposed) {
    return sum_transposed_outers(*transposed, convolution, left_grid, left, right, sum);
  }
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

template <typename T, typename S>
void gate_gradient(const S* grad, const S* out, float slope, int64_t voxels, int64_t channels, T* gated, float* sums) {
  const ConvolutionKernel<T, S>& kernel = *convolution_kernel<T, S>(instruction_set());
  const int64_t tasks = ceil_div(voxels, kVoxelsPerGate);
  const AlignedBuffer<float> partial(tasks * channels);
  at::parallel_for(0, tasks, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t at = task * kVoxelsPerGate * channels;
      kernel.gate(grad + at, out + at, slope, std::min(kVoxelsPerGate, voxels - task * kVoxelsPerGate), channels, gated + at,
                  partial.data() + task * channels);
    }
  });
  std::fill_n(sums, channels, 0.0F);
  for (int64_t task = 0; task < tasks; ++task) {
    for (int64_t c = 0; c < channels; ++c) sums[c] += partial.data()[task * channels + c];
  }
}

using FloatBoxParts = std::vector<ConvolutionPart<float>>;
template void tap_matmuls(const ConvolutionGeometry&, Grid, const FloatBoxParts&, const Epilogue&, const ResultLines<float>&);
template void tap_matmuls(const ConvolutionGeometry&, Grid, const FloatBoxParts&, const Epilogue&, const ResultLines<Bf16>&);
template void tap_matmuls(const ConvolutionGeometry&, Grid, const std::vector<ConvolutionPart<Bf16>>&, const Epilogue&,
                          const ResultLines<Bf16>&);
template void sum_tap_outers<float>(const ConvolutionGeometry&, Grid, const BoxView<float>&, const BoxView<float>&,
                                    const TapSums&);
template void sum_tap_outers<Bf16>(const ConvolutionGeometry&, Grid, const BoxView<Bf16>&, const BoxView<Bf16>&, const TapSums&);
template void gate_gradient(const float*, const float*, float, int64_t, int64_t, float*, float*);
template void gate_gradient(const Bf16*, const Bf16*, float, int64_t, int64_t, float*, float*);
template void gate_gradient(const Bf16*, const Bf16*, float, int64_t, int64_t, Bf16*, float*);

}  // namespace welkin::ops
