// SPDX-License-Identifier: Apache-2.0
// The voxels of two grids that a tap of a strided convolution joins; torch-free. A convolution goes from the fine grid to the
// coarse one: coarse voxel o reads fine voxel i = o * stride - padding + k along each axis.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace welkin::ops {

inline constexpr int kBoxAxes = 3;
using BoxShape = std::array<int64_t, kBoxAxes>;

struct ConvolutionGeometry {
  int64_t batch = 0;
  BoxShape fine{}, coarse{}, kernel{}, stride{}, padding{};

  int64_t num_taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

// The other grid's voxel that tap k joins to voxel v of this one, or -1.
using AxisPartners = std::vector<std::vector<int64_t>>;  // [k][v]

enum class Grid { Fine, Coarse };

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t padded(int64_t x, int64_t multiple) { return ceil_div(x, multiple) * multiple; }

// Partners of the voxels of `of` along one axis.
AxisPartners axis_partners(const ConvolutionGeometry& convolution, int axis, Grid of);

// The pairs of a tap along the last axis: equally spaced voxels, and equally spaced partners.
struct AxisRun {
  int64_t count = 0;
  int64_t first = 0, step = 0;                  // of the result's grid
  int64_t partner_first = 0, partner_step = 0;  // of the other
};

// Groups voxels of a grid by their taps: coarse voxels have all taps, fine ones only the taps that reach them over
// whole strides. Partners beyond an edge are -1.
class TapGroups {
 public:
  TapGroups(const ConvolutionGeometry& convolution, Grid result);

  int64_t num_lines() const { return convolution_.batch * result_[0] * result_[1]; }
  int64_t line_length() const { return result_[2]; }

  int64_t num_groups() const { return period_[0] * period_[1] * period_[2]; }
  std::vector<int64_t> taps(int64_t group) const;
  // Flat indices of the group's voxels in a range of lines, in order.
  void voxels(int64_t group, int64_t first_line, int64_t last_line, std::vector<int64_t>& to) const;
  // The partner of each of these voxels by a tap of the group.
  void partners(int64_t group, int64_t tap, int64_t first_line, int64_t last_line, std::vector<int64_t>& to) const;

 private:
  // Calls body(line, axis 0, axis 1, first voxel of axis 2) for the group's lines.
  template <typename Body>
  void for_lines(int64_t group, int64_t first_line, int64_t last_line, Body&& body) const;

  const ConvolutionGeometry& convolution_;
  BoxShape result_, partner_, period_, shift_{};
  std::array<AxisPartners, 3> axes_;
};

// Pairs (result, partner) of one tap for a range of lines of the result's grid. A line is a run of voxels along the last axis;
// lines are numbered through batch, axis 0 and axis 1.
class TapPairs {
 public:
  TapPairs(const ConvolutionGeometry& convolution, Grid result);

  int64_t num_lines() const { return convolution_.batch * result_[0] * result_[1]; }
  int64_t line_length() const { return result_[2]; }

  // Writes the flat voxel indices of all pairs and returns their number, at most line_length() per line.
  int64_t list(int64_t tap, int64_t first_line, int64_t last_line, int64_t* results, int64_t* partners) const;

 private:
  const ConvolutionGeometry& convolution_;
  BoxShape result_, partner_;
  std::array<AxisPartners, 2> axes_;
  std::vector<AxisRun> runs_;  // of the last axis, by k
};

}  // namespace welkin::ops
