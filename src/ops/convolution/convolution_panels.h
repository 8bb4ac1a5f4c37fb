// SPDX-License-Identifier: Apache-2.0
// The weights of a convolution as panels for kernels, packed once for all tasks, or by the only task that reads them; and
// the sums, which begin with the bias.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "ops/base/aligned_buffer.h"
#include "ops/convolution/convolution_cpu.h"
#include "ops/cpu/convolution/convolution_kernel.h"

namespace welkin::ops {

struct PanelRange {
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
};

template <typename T, typename S>
struct TapPanels {
  const ConvolutionGeometry& convolution;
  const std::vector<ConvolutionPart<T>>& parts;
  const Epilogue& end;
  int64_t width;
  const ConvolutionKernel<T, S>& kernel = *convolution_kernel<T, S>(instruction_set());
  int64_t depth = 0;          // of all parts
  AlignedBuffer<T> packed{};  // all panels, if many tasks read each; else empty

  int64_t num_panels() const { return ceil_div(width, kChannelPanel); }
  int64_t panel_width(int64_t panel) const { return std::min(kChannelPanel, width - panel * kChannelPanel); }

  void pack(const ConvolutionPart<T>& part, int64_t tap, int64_t begin, int64_t panel, T* to) const {
    const TapWeights& weights = part.weights;
    const float* from =
        weights.data + tap * weights.tap_stride + begin * weights.depth_stride + panel * kChannelPanel * weights.width_stride;
    kernel.pack({from, weights.depth_stride, weights.width_stride}, std::min(kDepthBlock, part.box.channels - begin),
                panel_width(panel), to);
  }

  T* packed_at(int64_t panel, int64_t tap, int64_t depth_begin) const {
    return packed.data() + ((panel * convolution.num_taps() + tap) * depth + depth_begin) * kChannelPanel;
  }

  void pack_all() {
    packed.reserve(num_panels() * convolution.num_taps() * depth * kChannelPanel);
    at::parallel_for(0, num_panels() * convolution.num_taps(), 1, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) {
        const int64_t panel = task / convolution.num_taps();
        const int64_t tap = task % convolution.num_taps();
        int64_t depth_begin = 0;
        for (const ConvolutionPart<T>& part : parts) {
          for (int64_t begin = 0; begin < part.box.channels; begin += kDepthBlock) {
            pack(part, tap, begin, panel, packed_at(panel, tap, depth_begin + begin));
          }
          depth_begin += part.box.channels;
        }
      }
    });
  }

  // Offset of a panel's sums for a task's voxels, counting panels from the task's first.
  int64_t sums_at(int64_t panel, int64_t voxels) const { return panel * voxels * kChannelPanel; }

  void begin_sums(PanelRange panels_of_task, int64_t voxels, float* sums) const {
    for (int64_t panel = panels_of_task.begin; panel < panels_of_task.end; ++panel) {
      const int64_t columns = panel_width(panel);
      float* of_panel = sums + sums_at(panel - panels_of_task.begin, voxels);
      if (end.bias == nullptr) {
        std::fill_n(of_panel, voxels * columns, 0.0F);
      } else {
        for (int64_t v = 0; v < voxels; ++v) std::copy_n(end.bias + panel * kChannelPanel, columns, of_panel + v * columns);
      }
    }
  }
};

}  // namespace welkin::ops
