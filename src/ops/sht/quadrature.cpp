// SPDX-License-Identifier: Apache-2.0
#include "ops/sht/quadrature.h"

#include <cmath>
#include <numbers>

#include "core/error.h"

namespace welkin::ops {
namespace {

constexpr int kMostIterations = 100;  // Newton's method takes five

struct LegendreValue {
  double value, slope;
};

// P_n(x) and its derivative, |x| < 1.
LegendreValue legendre_polynomial(int64_t n, double x) {
  double before = 1, value = x;
  for (int64_t k = 2; k <= n; ++k) {
    const auto degree = static_cast<double>(k);
    const double next = ((2 * degree - 1) * x * value - (degree - 1) * before) / degree;
    before = value;
    value = next;
  }
  return {value, static_cast<double>(n) * (x * value - before) / (x * x - 1)};
}

// Root number i, counted from north.
double legendre_root(int64_t n, int64_t i) {
  double x = std::cos(std::numbers::pi * (static_cast<double>(i) + 0.75) / (static_cast<double>(n) + 0.5));
  for (int iteration = 0; iteration < kMostIterations; ++iteration) {
    const LegendreValue p = legendre_polynomial(n, x);
    const double next = x - p.value / p.slope;
    if (std::abs(next - x) <= 1e-16) return next;
    x = next;
  }
  return x;
}

}  // namespace

Quadrature legendre_gauss(int64_t n) {
  WELKIN_CHECK(n >= 1, "a quadrature has nodes");
  Quadrature quadrature;
  for (int64_t i = 0; i < n; ++i) {
    const bool is_equator = 2 * i + 1 == n;
    const double x = is_equator ? 0.0 : i < n / 2 ? legendre_root(n, i) : -legendre_root(n, n - 1 - i);
    const double slope = legendre_polynomial(n, x).slope;
    quadrature.cosines.push_back(x);
    quadrature.weights.push_back(2 / ((1 - x * x) * slope * slope));
  }
  if (n == 1) quadrature.weights[0] = 2;
  return quadrature;
}

// Integrates the interpolation by cosines of multiples of the colatitude.
Quadrature clenshaw_curtis(int64_t n) {
  WELKIN_CHECK(n >= 2, "a grid from pole to pole has two latitudes");
  Quadrature quadrature;
  const auto steps = static_cast<double>(n - 1);
  for (int64_t i = 0; i < n; ++i) {
    const double colatitude = std::numbers::pi * static_cast<double>(i) / steps;
    double sum = 1;
    for (int64_t k = 1; 2 * k <= n - 1; ++k) {
      const auto degree = static_cast<double>(k);
      const double share = 2 * k == n - 1 ? 1.0 : 2.0;
      sum -= share * std::cos(2 * degree * colatitude) / (4 * degree * degree - 1);
    }
    const bool is_pole = i == 0 || i == n - 1;
    quadrature.cosines.push_back(is_pole ? (i == 0 ? 1.0 : -1.0) : std::cos(colatitude));
    quadrature.weights.push_back((is_pole ? 1 : 2) * sum / steps);
  }
  return quadrature;
}

}  // namespace welkin::ops
