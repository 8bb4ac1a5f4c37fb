// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution/convolution_grid.h"

namespace welkin::ops {

AxisPartners axis_partners(const ConvolutionGeometry& convolution, int axis, Grid of) {
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

TapPairs::TapPairs(const ConvolutionGeometry& convolution, Grid result)
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

TapGroups::TapGroups(const ConvolutionGeometry& convolution, Grid result)
    : convolution_(convolution),
      result_(result == Grid::Fine ? convolution.fine : convolution.coarse),
      partner_(result == Grid::Fine ? convolution.coarse : convolution.fine),
      period_(result == Grid::Fine ? convolution.stride : BoxShape{1, 1, 1}),
      shift_(result == Grid::Fine ? convolution.padding : BoxShape{}),
      axes_{axis_partners(convolution, 0, result), axis_partners(convolution, 1, result), axis_partners(convolution, 2, result)} {
}

std::vector<int64_t> TapGroups::taps(int64_t group) const {
  const BoxShape& kernel = convolution_.kernel;
  std::vector<int64_t> taps;
  for (int64_t k0 = group / period_[2] / period_[1]; k0 < kernel[0]; k0 += period_[0]) {
    for (int64_t k1 = group / period_[2] % period_[1]; k1 < kernel[1]; k1 += period_[1]) {
      for (int64_t k2 = group % period_[2]; k2 < kernel[2]; k2 += period_[2])
        taps.push_back((k0 * kernel[1] + k1) * kernel[2] + k2);
    }
  }
  return taps;
}

template <typename Body>
void TapGroups::for_lines(int64_t group, int64_t first_line, int64_t last_line, Body&& body) const {
  const BoxShape residue{group / period_[2] / period_[1], group / period_[2] % period_[1], group % period_[2]};
  const int64_t first = ((residue[2] - shift_[2]) % period_[2] + period_[2]) % period_[2];
  for (int64_t line = first_line; line < last_line; ++line) {
    const int64_t v1 = line % result_[1];
    const int64_t v0 = line / result_[1] % result_[0];
    if ((v0 + shift_[0]) % period_[0] == residue[0] && (v1 + shift_[1]) % period_[1] == residue[1]) body(line, v0, v1, first);
  }
}

void TapGroups::voxels(int64_t group, int64_t first_line, int64_t last_line, std::vector<int64_t>& to) const {
  to.clear();
  for_lines(group, first_line, last_line, [&](int64_t line, int64_t /*v0*/, int64_t /*v1*/, int64_t first) {
    for (int64_t v2 = first; v2 < result_[2]; v2 += period_[2]) to.push_back(line * result_[2] + v2);
  });
}

void TapGroups::partners(int64_t group, int64_t tap, int64_t first_line, int64_t last_line, std::vector<int64_t>& to) const {
  const BoxShape& kernel = convolution_.kernel;
  const std::vector<int64_t>& by_0 = axes_[0][static_cast<size_t>(tap / kernel[2] / kernel[1])];
  const std::vector<int64_t>& by_1 = axes_[1][static_cast<size_t>(tap / kernel[2] % kernel[1])];
  const std::vector<int64_t>& by_2 = axes_[2][static_cast<size_t>(tap % kernel[2])];
  to.clear();
  for_lines(group, first_line, last_line, [&](int64_t line, int64_t v0, int64_t v1, int64_t first) {
    const int64_t p0 = by_0[static_cast<size_t>(v0)];
    const int64_t p1 = by_1[static_cast<size_t>(v1)];
    const bool inside = p0 >= 0 && p1 >= 0;
    const int64_t sample = line / result_[1] / result_[0];
    const int64_t partner_line = ((sample * partner_[0] + p0) * partner_[1] + p1) * partner_[2];
    for (int64_t v2 = first; v2 < result_[2]; v2 += period_[2]) {
      const int64_t p2 = by_2[static_cast<size_t>(v2)];
      to.push_back(inside && p2 >= 0 ? partner_line + p2 : -1);
    }
  });
}

}  // namespace welkin::ops
