// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution_grid.h"

namespace welkin::ops {

AxisPartners axis_partners(const BoxConvolution& convolution, int axis, Grid of) {
  const auto a = static_cast<size_t>(axis);
  const int64_t fine = convolution.fine[a];
  const int64_t coarse = convolution.coarse[a];
  const int64_t stride = convolution.stride[a];
  AxisPartners partners(static_cast<size_t>(convolution.kernel[a]),
                        std::vector<int64_t>(static_cast<size_t>(of == Grid::Fine ? fine : coarse), -1));
  for (int64_t k = 0; k < convolution.kernel[a]; ++k) {
    for (int64_t o = 0; o < coarse; ++o) {
      const int64_t i = o * stride - convolution.padding[a] + k;
      if (i < 0 || i >= fine) continue;
      const int64_t voxel = of == Grid::Fine ? i : o;
      partners[static_cast<size_t>(k)][static_cast<size_t>(voxel)] = of == Grid::Fine ? o : i;
    }
  }
  return partners;
}

namespace {

std::vector<AxisRun> runs_of(const AxisPartners& partners) {
  std::vector<AxisRun> runs;
  for (const std::vector<int64_t>& of_tap : partners) {
    AxisRun& run = runs.emplace_back();
    for (size_t v = 0; v < of_tap.size(); ++v) {
      if (of_tap[v] < 0) continue;
      const auto voxel = static_cast<int64_t>(v);
      if (run.count == 0) {
        run.first = voxel;
        run.partner_first = of_tap[v];
      } else if (run.count == 1) {
        run.step = voxel - run.first;
        run.partner_step = of_tap[v] - run.partner_first;
      }
      ++run.count;
    }
  }
  return runs;
}

}  // namespace

TapPairs::TapPairs(const BoxConvolution& convolution, Grid result)
    : convolution_(convolution),
      result_(result == Grid::Fine ? convolution.fine : convolution.coarse),
      partner_(result == Grid::Fine ? convolution.coarse : convolution.fine),
      axes_{axis_partners(convolution, 0, result), axis_partners(convolution, 1, result)},
      runs_(runs_of(axis_partners(convolution, 2, result))) {}

int64_t TapPairs::list(int64_t tap, int64_t first_line, int64_t last_line, int64_t* results, int64_t* partners) const {
  const AxisRun& run = runs_[static_cast<size_t>(tap % convolution_.kernel[2])];
  const auto k1 = static_cast<size_t>(tap / convolution_.kernel[2] % convolution_.kernel[1]);
  const auto k0 = static_cast<size_t>(tap / convolution_.kernel[2] / convolution_.kernel[1]);
  int64_t count = 0;
  for (int64_t line = first_line; line < last_line; ++line) {
    const int64_t p1 = axes_[1][k1][static_cast<size_t>(line % result_[1])];
    const int64_t p0 = axes_[0][k0][static_cast<size_t>(line / result_[1] % result_[0])];
    if (p0 < 0 || p1 < 0) continue;
    const int64_t sample = line / result_[1] / result_[0];
    const int64_t result = line * result_[2] + run.first;
    const int64_t partner = ((sample * partner_[0] + p0) * partner_[1] + p1) * partner_[2] + run.partner_first;
    for (int64_t i = 0; i < run.count; ++i) {
      results[count + i] = result + i * run.step;
      partners[count + i] = partner + i * run.partner_step;
    }
    count += run.count;
  }
  return count;
}

}  // namespace welkin::ops
