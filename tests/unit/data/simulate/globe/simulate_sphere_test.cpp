// SPDX-License-Identifier: Apache-2.0
// Fourier and Legendre transforms against sums, closed forms and round trips.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "core/philox.h"
#include "data/simulate/fft.h"
#include "data/simulate/globe/legendre.h"
#include "data/simulate/globe/sphere_transform.h"
#include "number_close.h"

namespace welkin::data::simulate {
namespace {

using welkin::tests::close;
using welkin::tests::rounds_to;
using welkin::tests::within;

std::complex<double> sphere_test_value(uint64_t i) {
  const PhiloxBlock block = philox(7, 0, i);
  const auto pair = normal_pair(block[0], block[1]);
  return {pair[0], pair[1]};
}

class SimulateFft : public testing::TestWithParam<int64_t> {};

TEST_P(SimulateFft, EqualsThePlainSumAndReturns) {
  const int64_t n = GetParam(), columns = 19;
  std::vector<std::complex<double>> x(static_cast<size_t>(n * columns));
  for (size_t i = 0; i < x.size(); ++i) x[i] = sphere_test_value(i);
  std::vector<std::complex<double>> y = x;
  const Fft<double> fft(n);
  fft.transform(y.data(), columns, columns, FftSign::Forward);
  for (int64_t k = 0; k < n; ++k) {
    std::complex<double> sum = 0.0;
    for (int64_t i = 0; i < n; ++i) {
      sum += x[static_cast<size_t>(i * columns + 17)] *
             std::polar(1.0, -2.0 * std::numbers::pi * static_cast<double>(i * k % n) / static_cast<double>(n));
    }
    EXPECT_TRUE(rounds_to(std::abs(sum - y[static_cast<size_t>(k * columns + 17)]), 0.0, std::sqrt(n), kFp64, 4 * n))
        << "n=" << n << " k=" << k;
  }
  fft.transform(y.data(), columns, columns, FftSign::Inverse);
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_TRUE(rounds_to(std::abs(y[i] / static_cast<double>(n) - x[i]), 0.0, 4, kFp64, 4 * n));
}

INSTANTIATE_TEST_SUITE_P(Lengths, SimulateFft, testing::Values(1, 2, 3, 4, 5, 7, 8, 12, 30, 49, 64, 77, 96, 120));

TEST(SimulateFftLength, IsTheNextProductOfTwoThreeAndFive) {
  EXPECT_EQ(next_fast_length(1), 1);
  EXPECT_EQ(next_fast_length(62), 64);
  EXPECT_EQ(next_fast_length(128), 128);
  EXPECT_EQ(next_fast_length(257), 270);
}

TEST(SimulateLegendre, FunctionsAreOrthonormalUnderGaussianQuadrature) {
  const int64_t truncation = 42;
  const Latitudes rows = gaussian_latitudes(64);
  const LegendreTable table(rows, truncation);
  double weights = 0.0;
  for (const double w : rows.weight) weights += w;
  EXPECT_TRUE(close(weights, 2.0, kFp64, 64));
  for (const int64_t m : {0, 1, 5, 41}) {
    for (int64_t a = m; a <= truncation; a += 3) {
      for (int64_t b = a; b <= truncation; b += 2) {  // equal parity: both halves of the sphere are alike
        double sum = 0.0;
        for (int64_t j = 0; j < table.pairs(); ++j) {
          sum += 2.0 * rows.weight[static_cast<size_t>(j)] * table.p(j)[table.modes().index(m, a)] *
                 table.p(j)[table.modes().index(m, b)];
        }
        EXPECT_TRUE(rounds_to(sum, a == b ? 1.0 : 0.0, 1, kFp64, 64 * truncation)) << "m=" << m << " n=" << a << ", " << b;
      }
    }
  }
}

TEST(SimulateLegendre, SlopeAndTurnEqualDifferences) {
  constexpr double kStep = 1e-6;
  const auto table_at = [](double latitude) {
    return LegendreTable(
        {.sine = {std::sin(latitude), -std::sin(latitude)}, .cosine = {std::cos(latitude), std::cos(latitude)}, .weight = {}}, 9);
  };
  const LegendreTable here = table_at(0.7), above = table_at(0.7 + kStep), below = table_at(0.7 - kStep);
  for (int64_t m = 0; m <= 9; ++m) {
    for (int64_t n = m; n <= 9; ++n) {
      const int64_t i = here.modes().index(m, n);
      // A central difference: u / step and step^2, both on the scale of the 9th derivative's factors.
      EXPECT_TRUE(within(here.slope(0)[i], (above.p(0)[i] - below.p(0)[i]) / (2 * kStep), {1e-7, "the difference over 2e-6"}))
          << m << " " << n;
      EXPECT_TRUE(rounds_to(here.turn(0)[i], static_cast<double>(m) * here.p(0)[i] / std::cos(0.7), 10, kFp64, 64));
    }
  }
}

TEST(SimulateSphere, SolidRotationHasItsWindEverywhereAndAtThePoles) {
  // psi = -sin(lat) turns as u = cos(lat); P_1^0 = sqrt(3/2) sin(lat).
  const SphereTransform sphere(equiangular_latitudes(19), 36, 5);
  const Bundle bundle{.scalars = 0, .vectors = 1};
  ModeValues modes(static_cast<size_t>(2 * sphere.modes().count()));
  modes[static_cast<size_t>(2 * sphere.modes().index(0, 1))] = -std::sqrt(2.0 / 3.0);
  for (int64_t pair = 0; pair < sphere.pairs(); ++pair) {
    std::vector<double> points;
    sphere.to_points(pair, bundle, modes, points);
    for (size_t i = 0; i < points.size(); i += 2) {
      EXPECT_TRUE(rounds_to(points[i], sphere.rows().cosine[static_cast<size_t>(pair)], 1, kFp64, 36));
      EXPECT_TRUE(rounds_to(points[i + 1], 0.0, 1, kFp64, 36));
    }
  }
}

TEST(SimulateSphere, ModesSurviveTheWayToPointsAndBack) {
  const int64_t truncation = 21;
  const SphereTransform sphere(gaussian_latitudes(32), 64, truncation);
  const Bundle bundle{.scalars = 1, .vectors = 1};
  ModeValues modes(static_cast<size_t>(3 * sphere.modes().count())), back(modes.size());
  for (size_t i = 0; i < modes.size(); ++i) modes[i] = sphere_test_value(i);
  for (int64_t n = 0; n <= truncation; ++n) {
    for (size_t c = 0; c < 3; ++c) modes[static_cast<size_t>(3 * n) + c].imag(0.0);  // real fields
  }
  modes[1] = modes[2] = 0.0;  // a constant potential has no wind
  std::vector<double> points;
  for (int64_t pair = 0; pair < sphere.pairs(); ++pair) {
    sphere.to_points(pair, bundle, modes, points);
    sphere.add_to_modes(pair, bundle, points, back);
  }
  constexpr double kLargest = 4.0 * truncation * (truncation + 1);
  for (int64_t m = 0; m <= truncation; ++m) {
    for (int64_t n = m; n <= truncation; ++n) {
      const auto i = static_cast<size_t>(3 * sphere.modes().index(m, n));
      const double laplacian = -static_cast<double>(n * (n + 1));  // curl and divergence of a wind from potentials
      EXPECT_TRUE(rounds_to(std::abs(back[i] - modes[i]), 0.0, 4, kFp64, 64 * truncation));
      EXPECT_TRUE(rounds_to(std::abs(back[i + 1] - laplacian * modes[i + 1]), 0.0, kLargest, kFp64, 64 * truncation));
      EXPECT_TRUE(rounds_to(std::abs(back[i + 2] - laplacian * modes[i + 2]), 0.0, kLargest, kFp64, 64 * truncation));
    }
  }
}

}  // namespace
}  // namespace welkin::data::simulate
