// SPDX-License-Identifier: Apache-2.0
#include "train/forecast/sphere_noise.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/error.h"
#include "ops/random/normal_stream.h"

namespace welkin::train {
namespace {

constexpr double kEarthRadiusKm = 6371.0, kLeastVariance = 1e-8, kFinestStep = 0.1, kRadians = std::numbers::pi / 180;

// Standard deviations of the coefficients by degree, such that the field's variance is 1: the squares of the harmonics of degree
// l add up to (2 l + 1) / (4 pi) at every point.
std::vector<double> deviations(int64_t most_degrees, double length_km) {
  const double ratio = length_km / kEarthRadiusKm;
  std::vector<double> variance;
  double sum = 0;
  for (int64_t l = 0; l <= std::max<int64_t>(1, most_degrees); ++l) {
    const auto degree = static_cast<double>(l);
    const double value = std::exp(-degree * (degree + 1) * ratio * ratio / 2);
    if (value < kLeastVariance) break;
    variance.push_back(value);
    sum += value * (2 * degree + 1) / (4 * std::numbers::pi);
  }
  for (double& value : variance) value = std::sqrt(value / sum);
  return variance;
}

// Degrees that rows as close as these can show: a part of the globe shows as much as the whole.
int64_t degrees_of(const std::vector<double>& latitude) {
  constexpr double kPoleToPole = 180;
  double step = kPoleToPole;
  for (size_t i = 1; i < latitude.size(); ++i) step = std::min(step, std::abs(latitude[i] - latitude[i - 1]));
  return std::llround(kPoleToPole / std::max(step, kFinestStep));
}

}  // namespace

SphereNoise::SphereNoise(std::vector<double> latitude, std::vector<double> longitude, double length_km)
    : latitude_(std::move(latitude)), longitude_(std::move(longitude)), deviation_(deviations(degrees_of(latitude_), length_km)) {
  for (size_t order = 0; order < deviation_.size(); ++order) {
    for (const double degrees : longitude_) {
      cosine_.push_back(std::cos(static_cast<double>(order) * degrees * kRadians));
      sine_.push_back(std::sin(static_cast<double>(order) * degrees * kRadians));
    }
  }
}

void SphereNoise::fill(uint64_t key, std::span<float> out) const {
  WELKIN_CHECK(out.size() == latitude_.size() * longitude_.size(), "a field of the grid");
  const auto degrees = static_cast<int64_t>(deviation_.size());
  std::vector<float> coefficients(static_cast<size_t>(degrees * degrees));
  ops::fill_normals(key, 0, degrees * degrees, 1.0, coefficients.data());
  for (size_t row = 0; row < latitude_.size(); ++row) {
    fill_row(std::sin(latitude_[row] * kRadians), coefficients, out.subspan(row * longitude_.size(), longitude_.size()));
  }
}

// For each order m the associated Legendre functions of degree m, m + 1, ... by their recurrence, normalised to a mean square of
// 1 / (4 pi) over the sphere; then the waves of the order along the row.
void SphereNoise::fill_row(double sine, const std::vector<float>& coefficients, std::span<float> out) const {
  const auto degrees = static_cast<int64_t>(deviation_.size());
  const double cosine = std::sqrt(std::max(0.0, 1 - sine * sine));
  std::vector<double> row(out.size(), 0.0);
  double sectoral = std::sqrt(1 / (4 * std::numbers::pi));  // degree m of order m
  for (int64_t m = 0; m < degrees; ++m) {
    const auto order = static_cast<double>(m);
    if (m > 0) sectoral *= std::sqrt((2 * order + 1) / (2 * order)) * cosine;
    double before = 0, legendre = sectoral, even = 0, odd = 0;
    for (int64_t l = m; l < degrees; ++l) {
      const auto degree = static_cast<double>(l);
      if (l > m) {
        const double factor = std::sqrt((4 * degree * degree - 1) / (degree * degree - order * order));
        const double back = std::sqrt(((degree - 1) * (degree - 1) - order * order) / (4 * (degree - 1) * (degree - 1) - 1));
        before = std::exchange(legendre, factor * (sine * legendre - back * before));
      }
      const double value = deviation_[static_cast<size_t>(l)] * legendre;
      even += value * static_cast<double>(coefficients[static_cast<size_t>(l * l + l + m)]);
      odd += value * static_cast<double>(coefficients[static_cast<size_t>(l * l + l - m)]);
    }
    const double share = m == 0 ? 1.0 : std::numbers::sqrt2;
    const double* cosines = cosine_.data() + static_cast<size_t>(m) * out.size();
    const double* sines = sine_.data() + static_cast<size_t>(m) * out.size();
    for (size_t i = 0; i < out.size(); ++i) row[i] += share * (even * cosines[i] + (m == 0 ? 0.0 : odd * sines[i]));
  }
  std::ranges::transform(row, out.begin(), [](double value) { return static_cast<float>(value); });
}

}  // namespace welkin::train
