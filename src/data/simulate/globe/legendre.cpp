// SPDX-License-Identifier: Apache-2.0
#include "data/simulate/globe/legendre.h"

#include <algorithm>
#include <numbers>
#include <utility>

namespace welkin::data::simulate {
namespace {

// Recurrence coefficient of the normalised functions: sqrt((n^2 - m^2) / (4 n^2 - 1)).
double epsilon(int64_t m, int64_t n) {
  const auto a = static_cast<double>(m), b = static_cast<double>(n);
  return std::sqrt((b * b - a * a) / (4.0 * b * b - 1.0));
}

// Functions of one order up to degree `last`, from the value of the lowest degree: stable upwards in n.
void climb(int64_t m, int64_t last, double sine, double lowest, std::vector<double>& out) {
  out.assign(static_cast<size_t>(last - m + 1), 0.0);
  out[0] = lowest;
  if (last > m) out[1] = std::sqrt(2.0 * static_cast<double>(m) + 3.0) * sine * lowest;
  for (int64_t n = m + 2; n <= last; ++n) {
    const auto i = static_cast<size_t>(n - m);
    out[i] = (sine * out[i - 1] - epsilon(m, n - 1) * out[i - 2]) / epsilon(m, n);
  }
}

}  // namespace

Latitudes gaussian_latitudes(int64_t count) {
  Latitudes rows;
  const auto n = static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) {
    double x = std::cos(std::numbers::pi * (static_cast<double>(i) + 0.75) / (n + 0.5)), slope = 1.0;
    for (int iteration = 0; iteration < 20; ++iteration) {
      double below = 1.0, value = x;
      for (int64_t k = 2; k <= count; ++k) {
        const auto d = static_cast<double>(k);
        below = std::exchange(value, ((2.0 * d - 1.0) * x * value - (d - 1.0) * below) / d);
      }
      slope = n * (below - x * value) / (1.0 - x * x);
      const double change = value / slope;
      x -= change;
      if (std::abs(change) < 1e-15) break;
    }
    rows.sine.push_back(x);
    rows.cosine.push_back(std::sqrt(1.0 - x * x));
    rows.weight.push_back(2.0 / ((1.0 - x * x) * slope * slope));
  }
  return rows;
}

Latitudes equiangular_latitudes(int64_t count) {
  Latitudes rows;
  for (int64_t j = 0; j < count; ++j) {
    // Exact symmetry, and an exact 0 at the poles, which sin and cos of the angle would miss.
    const double colatitude = std::numbers::pi * static_cast<double>(std::min(j, count - 1 - j)) / static_cast<double>(count - 1);
    rows.sine.push_back((2 * j < count ? 1.0 : -1.0) * std::cos(colatitude));
    rows.cosine.push_back(std::sin(colatitude));
  }
  return rows;
}

LegendreTable::LegendreTable(const Latitudes& rows, int64_t truncation) : modes_{truncation}, pairs_((rows.count() + 1) / 2) {
  const auto size = static_cast<size_t>(pairs_ * modes_.count());
  p_.resize(size);
  slope_.resize(size);
  turn_.resize(size);
  for (int64_t j = 0; j < pairs_; ++j) {
    const int64_t at = j * modes_.count();
    fill_pair(rows.sine[static_cast<size_t>(j)], rows.cosine[static_cast<size_t>(j)], p_.data() + at, slope_.data() + at,
              turn_.data() + at);
  }
}

void LegendreTable::fill_pair(double sine, double cosine, double* p, double* slope, double* turn) const {
  const int64_t top = modes_.truncation;
  std::vector<double> zonal, over_cosine;
  climb(0, top, sine, std::numbers::sqrt2 / 2.0, zonal);
  for (int64_t n = 0; n <= top; ++n) p[n] = zonal[static_cast<size_t>(n)];
  double lowest = std::numbers::sqrt2 / 2.0;  // P_m^m / cos^min(m,1) of the last order
  for (int64_t m = 1; m <= top; ++m) {
    // Divided by the cosine throughout, so that nothing is divided by zero at the poles.
    lowest *= std::sqrt((2.0 * static_cast<double>(m) + 1.0) / (2.0 * static_cast<double>(m))) * (m == 1 ? 1.0 : cosine);
    climb(m, top + 1, sine, lowest, over_cosine);
    const int64_t begin = modes_.index(m, m);
    for (int64_t n = m; n <= top; ++n) {
      const auto i = static_cast<size_t>(n - m);
      const double lower = n > m ? over_cosine[i - 1] * epsilon(m, n) : 0.0;
      p[begin + n - m] = over_cosine[i] * cosine;
      turn[begin + n - m] = static_cast<double>(m) * over_cosine[i];
      slope[begin + n - m] = static_cast<double>(n + 1) * lower - static_cast<double>(n) * epsilon(m, n + 1) * over_cosine[i + 1];
      if (m == 1) slope[n] = std::sqrt(static_cast<double>(n) * static_cast<double>(n + 1)) * p[begin + n - m];
    }
  }
}

}  // namespace welkin::data::simulate
