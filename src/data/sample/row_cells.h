// SPDX-License-Identifier: Apache-2.0
// Borders of the cells of a grid's rows, for area weights and conservative regridding. Torch-free.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace welkin::data {

// Outer border of the cell of the row `last`, whose neighbour is `before`.
inline double outer_row_border(double last, double before) {
  constexpr double kPole = 90, kTiny = 1e-6;  // degrees; rounding of coordinates
  const double step = last - before;
  const bool reaches_pole = std::abs(last + step) > kPole - kTiny && std::signbit(last + step) == std::signbit(step);
  return reaches_pole ? std::copysign(kPole, step) : last + step / 2;
}

// Latitudes in degrees, ascending or descending -> the borders in the same order, one more than there are rows, within 90 S and
// 90 N. They lie halfway between rows. Beyond the outermost row a cell extends to the pole if that is no further than the next
// row (as on a Gaussian grid, where the whole cap belongs to that row). Else it extends by half of that distance.
inline std::vector<double> row_borders(const std::vector<double>& latitude) {
  if (latitude.size() < 2) return {-90.0, 90.0};
  const size_t count = latitude.size();
  std::vector<double> borders{outer_row_border(latitude[0], latitude[1])};
  for (size_t i = 0; i + 1 < count; ++i) borders.push_back((latitude[i] + latitude[i + 1]) / 2);
  borders.push_back(outer_row_border(latitude[count - 1], latitude[count - 2]));
  for (double& border : borders) border = std::clamp(border, -90.0, 90.0);
  return borders;
}

}  // namespace welkin::data
