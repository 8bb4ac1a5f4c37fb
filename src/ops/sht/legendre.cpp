// SPDX-License-Identifier: Apache-2.0
#include "ops/sht/legendre.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace welkin::ops {

std::vector<double> legendre_table(int64_t orders, int64_t degrees, std::span<const double> cosines) {
  constexpr int64_t kMostDegrees = 1900;
  WELKIN_CHECK(degrees <= kMostDegrees, "associated Legendre functions of such a degree are out of range");
  const size_t points = cosines.size();
  std::vector<double> table(static_cast<size_t>(orders * degrees) * points, 0.0);
  const auto row = [&](int64_t m, int64_t l) { return table.data() + static_cast<size_t>(m * degrees + l) * points; };
  std::vector<double> diagonal(points, std::sqrt(0.25 / std::numbers::pi));  // P_mm
  for (int64_t order = 0; order < std::min(orders, degrees); ++order) {
    const auto m = static_cast<double>(order);
    for (size_t k = 0; k < points; ++k) {
      const double x = cosines[k];
      if (order > 0) diagonal[k] *= -std::sqrt((2 * m + 1) / (2 * m)) * std::sqrt((1 - x) * (1 + x));
      double before = 0, value = diagonal[k];
      row(order, order)[k] = value;
      for (int64_t degree = order + 1; degree < degrees; ++degree) {
        const auto l = static_cast<double>(degree);
        const double scale = std::sqrt((4 * l * l - 1) / ((l - m) * (l + m)));
        const double earlier = std::sqrt(((l - 1 - m) * (l - 1 + m)) / (4 * (l - 1) * (l - 1) - 1));
        const double next = scale * (x * value - earlier * before);
        before = value;
        value = next;
        row(order, degree)[k] = value;
      }
    }
  }
  return table;
}

}  // namespace welkin::ops
