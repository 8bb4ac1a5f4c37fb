// SPDX-License-Identifier: Apache-2.0
// The transform against harmonics in closed form, round trips, gradients by differences.
#include "ops/sht/spherical_transform.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/tril.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "gradient_check.h"
#include "ops/base/autocast.h"
#include "ops/sht/legendre.h"
#include "ops/sht/quadrature.h"

namespace welkin::ops {
namespace {

using tests::Stated;
using tests::within;

constexpr Stated kExact{1e-13, "a quadrature that is exact, in float64"};
constexpr Stated kWide{1e-12, "what the transform promises in float64"}, kSingle{1e-6, "what it promises in float32"};

Quadrature nodes_of(LatitudeGrid grid, int64_t n) {
  return grid == LatitudeGrid::Equiangular ? clenshaw_curtis(n) : legendre_gauss(n);
}

double integral_of_power(const Quadrature& quadrature, int power) {
  double sum = 0;
  for (size_t i = 0; i < quadrature.cosines.size(); ++i) sum += quadrature.weights[i] * std::pow(quadrature.cosines[i], power);
  return sum;
}

TEST(Quadrature, IntegratesPolynomials) {
  for (const int64_t n : {1, 2, 3, 8, 33}) {
    const Quadrature gauss = legendre_gauss(n);
    for (int power = 0; power < 2 * n; ++power) {
      EXPECT_TRUE(within(integral_of_power(gauss, power), power % 2 == 0 ? 2.0 / (power + 1) : 0.0, kExact)) << n << " " << power;
    }
    if (n == 1) continue;
    const Quadrature equal = clenshaw_curtis(n);
    for (int power = 0; power < n; ++power) {
      EXPECT_TRUE(within(integral_of_power(equal, power), power % 2 == 0 ? 2.0 / (power + 1) : 0.0, kExact)) << n << " " << power;
    }
  }
}

TEST(Quadrature, GoesFromNorthToSouth) {
  for (const LatitudeGrid grid : {LatitudeGrid::Equiangular, LatitudeGrid::LegendreGauss}) {
    const Quadrature quadrature = nodes_of(grid, 7);
    for (size_t i = 1; i < quadrature.cosines.size(); ++i) EXPECT_LT(quadrature.cosines[i], quadrature.cosines[i - 1]);
  }
  EXPECT_EQ(clenshaw_curtis(9).cosines.front(), 1.0);
  EXPECT_EQ(clenshaw_curtis(9).cosines.back(), -1.0);
}

TEST(Legendre, EqualsTheStandardLibrary) {
  constexpr int64_t kOrders = 12, kDegrees = 16;
  const Quadrature quadrature = legendre_gauss(16);
  const std::vector<double> table = legendre_table(kOrders, kDegrees, quadrature.cosines);
  const size_t points = quadrature.cosines.size();
  for (unsigned m = 0; m < kOrders; ++m) {
    for (unsigned l = 0; l < kDegrees; ++l) {
      for (size_t k = 0; k < points; ++k) {
        const double wanted = l < m ? 0.0 : std::sph_legendre(l, m, std::acos(quadrature.cosines[k]));
        EXPECT_TRUE(within(table[(m * kDegrees + l) * points + k], wanted, kWide)) << l << " " << m;
      }
    }
  }
}

// The sum of |Y_lm|^2 over m is (2 l + 1) / (4 pi) everywhere.
TEST(Legendre, HoldsTheAdditionTheoremAtHighDegrees) {
  constexpr int64_t kDegrees = 720;
  const std::vector<double> cosines{0.999999, 0.9, 0.3, -0.0001};
  const std::vector<double> table = legendre_table(kDegrees, kDegrees, cosines);
  for (const int64_t l : {100, 500, 719}) {
    for (size_t k = 0; k < cosines.size(); ++k) {
      double sum = 0;
      for (int64_t m = 0; m <= l; ++m) {
        const double value = table[static_cast<size_t>(m * kDegrees + l) * cosines.size() + k];
        sum += (m == 0 ? 1 : 2) * value * value;
      }
      const double wanted = static_cast<double>(2 * l + 1) / (4 * std::numbers::pi);
      EXPECT_TRUE(within(sum / wanted, 1.0, {1e-11, "hundreds of steps of the recurrence in float64"})) << l;
    }
  }
}

// Random coefficients of real fields: zero where l < m, real where m is 0.
at::Tensor some_coefficients(const SphericalGrid& grid, at::ScalarType type) {
  at::Tensor parts = tests::test_values({2, 3, 2, grid.degrees, grid.orders}, 5).tril();
  parts.select(2, 1).select(-1, 0).zero_();
  return at::complex(parts.select(2, 0), parts.select(2, 1)).to(at::toComplexType(type));
}

TEST(SphericalTransform, RoundTripsKeepCoefficients) {
  for (const SphericalGrid& grid :
       {SphericalGrid{16, 32, 16, 16, LatitudeGrid::LegendreGauss}, SphericalGrid{33, 64, 17, 17, LatitudeGrid::Equiangular},
        SphericalGrid{9, 11, 5, 4, LatitudeGrid::Equiangular}, SphericalGrid{60, 120, 60, 60, LatitudeGrid::LegendreGauss}}) {
    const SphericalTransform transform(grid);
    for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
      const at::Tensor wanted = some_coefficients(grid, type);
      const at::Tensor field = transform.synthesise(wanted);
      EXPECT_EQ(field.scalar_type(), type);
      EXPECT_EQ(field.sizes(), (std::vector<int64_t>{2, 3, grid.latitudes, grid.longitudes}));
      const double error = tests::relative_l2(at::view_as_real(transform.analyse(field)), at::view_as_real(wanted));
      EXPECT_TRUE(within(error, 0.0, type == at::kDouble ? kWide : kSingle)) << grid.latitudes << " " << type;
    }
  }
}

// f = Re(Y_lm), by the standard library: the coefficient of (l, m) is a half (of m = 0: one), the others are zero.
TEST(SphericalTransform, FindsHarmonicsInClosedForm) {
  constexpr int64_t kRows = 12, kColumns = 24, kDegrees = 6;
  for (const LatitudeGrid grid : {LatitudeGrid::Equiangular, LatitudeGrid::LegendreGauss}) {
    const SphericalTransform transform({kRows, kColumns, kDegrees, kDegrees, grid});
    const Quadrature quadrature = nodes_of(grid, kRows);
    const at::Tensor longitude = at::arange(kColumns, at::kDouble).mul(2 * std::numbers::pi / kColumns);
    for (unsigned l = 0; l < kDegrees; ++l) {
      for (unsigned m = 0; m <= l; ++m) {
        std::vector<double> meridian;
        for (const double x : quadrature.cosines) meridian.push_back(std::sph_legendre(l, m, std::acos(x)));
        const at::Tensor field = at::outer(at::tensor(meridian, at::kDouble), at::cos(longitude.mul(static_cast<double>(m))));
        at::Tensor wanted = at::zeros({kDegrees, kDegrees}, at::kComplexDouble);
        wanted[l][m].fill_(m == 0 ? 1.0 : 0.5);
        const at::Tensor got = transform.analyse(field);
        EXPECT_TRUE(within(got.sub(wanted).abs().max().item<double>(), 0.0, kWide)) << l << " " << m;
        EXPECT_TRUE(within(transform.synthesise(wanted).sub(field).abs().max().item<double>(), 0.0, kWide)) << l << " " << m;
      }
    }
  }
}

TEST(SphericalTransform, GradientsAreRight) {
  const SphericalTransform transform({5, 8, 4, 3, LatitudeGrid::Equiangular});
  const auto analysed = [&](const std::vector<at::Tensor>& in) { return at::view_as_real(transform.analyse(in[0])); };
  EXPECT_TRUE(tests::gradcheck(analysed, {tests::test_values({2, 5, 8}, 1)}));
  const auto made = [&](const std::vector<at::Tensor>& in) { return transform.synthesise(at::view_as_complex(in[0])); };
  EXPECT_TRUE(tests::gradcheck(made, {tests::test_values({2, 4, 3, 2}, 2)}));
}

TEST(SphericalTransform, IsInFloat32UnderAutocast) {
  const SphericalTransform transform({6, 12, 6, 6, LatitudeGrid::LegendreGauss});
  const at::Tensor field = tests::test_values({2, 6, 12}, 3).to(at::kFloat).requires_grad_();
  const at::Tensor plain = transform.analyse(field);
  at::view_as_real(plain).square().sum().backward();
  const at::Tensor gradient = field.grad().clone();
  field.mutable_grad() = at::Tensor();
  const AutocastGuard autocast(at::kCPU, at::kBFloat16);
  const at::Tensor got = transform.analyse(field);
  EXPECT_TRUE(at::equal(got, plain));
  at::view_as_real(got).square().sum().backward();  // also where a backward pass begins inside of the scope
  EXPECT_TRUE(at::equal(field.grad(), gradient));
  EXPECT_EQ(transform.analyse(field.detach().to(at::kBFloat16)).scalar_type(), at::kComplexFloat);
}

}  // namespace
}  // namespace welkin::ops
