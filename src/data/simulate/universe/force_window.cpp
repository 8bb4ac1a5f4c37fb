// SPDX-License-Identifier: Apache-2.0
#include "data/simulate/universe/force_window.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace welkin::data::simulate {

ForceWindow::ForceWindow(const PlaneStore& potential, ThreadPool& pool, int64_t first, int64_t planes)
    : edge_(potential.planes()), first_(((first % edge_) + edge_) % edge_) {
  const int64_t area = edge_ * edge_;
  gradient_.resize(static_cast<size_t>(planes * area));
  std::vector<float> values(static_cast<size_t>((planes + 4) * area));
  pool.parallel_for(planes + 4, [&](int64_t p) { potential.read(first_ + p - 2, 0, area, values.data() + p * area); });
  pool.parallel_for(planes, [&](int64_t p) { differentiate(values, p); });
}

int64_t ForceWindow::bytes(int64_t edge, int64_t planes) { return edge * edge * ((planes + 4) * 4 + planes * 12); }

void ForceWindow::differentiate(const std::vector<float>& potential, int64_t plane) {
  const int64_t n = edge_, area = n * n;
  const auto slope = [](float two_below, float below, float above, float two_above) {
    return (2.0f / 3.0f) * (above - below) - (1.0f / 12.0f) * (two_above - two_below);
  };
  const float* here = potential.data() + (plane + 2) * area;
  for (int64_t y = 0; y < n; ++y) {
    const float *y2 = here + (y + n - 2) % n * n, *y1 = here + (y + n - 1) % n * n;
    const float *y3 = here + (y + 1) % n * n, *y4 = here + (y + 2) % n * n;
    const float* row = here + y * n;
    for (int64_t x = 0; x < n; ++x) {
      const float* column = row + x;
      gradient_[static_cast<size_t>(plane * area + y * n + x)] = {
          slope(column[-2 * area], column[-area], column[area], column[2 * area]), slope(y2[x], y1[x], y3[x], y4[x]),
          slope(row[(x + n - 2) % n], row[(x + n - 1) % n], row[(x + 1) % n], row[(x + 2) % n])};
    }
  }
}

std::array<double, 3> ForceWindow::at(const CloudAxis& along, const CloudAxis& row, const CloudAxis& column) const {
  constexpr double kUnit = 1.0 / static_cast<double>(kCloudUnit);
  std::array<double, 3> sum{0.0, 0.0, 0.0};
  for (size_t c = 0; c < 8; ++c) {
    const int64_t plane = (along.cell[c >> 2] - first_ + edge_) % edge_;
    const auto weight = static_cast<double>(along.weight[c >> 2] * row.weight[(c >> 1) & 1] * column.weight[c & 1]) * kUnit;
    const auto& g = gradient_[static_cast<size_t>((plane * edge_ + row.cell[(c >> 1) & 1]) * edge_ + column.cell[c & 1])];
    for (size_t axis = 0; axis < 3; ++axis) sum[axis] += weight * static_cast<double>(g[axis]);
  }
  return sum;
}

int64_t planes_that_fit(std::string_view what, int64_t bytes_each, int64_t fixed_bytes, int64_t most, int64_t window_bytes) {
  const int64_t fit = (window_bytes - fixed_bytes) / bytes_each;
  if (fit < 1) {
    constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
    throw ConfigError(
        "simulate",
        cat("the memory limit is too small for ", what, ": needed_gib=", static_cast<double>(fixed_bytes + bytes_each) / kGib,
            ", left_gib=", static_cast<double>(window_bytes) / kGib),
        "Raise --max_memory_gib or lower --edge");
  }
  return std::min(fit, most);
}

}  // namespace welkin::data::simulate
