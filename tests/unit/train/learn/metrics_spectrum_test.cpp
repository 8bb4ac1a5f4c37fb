// SPDX-License-Identifier: Apache-2.0
#include "train/learn/metrics_spectrum.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <numbers>

#include "gradient_check.h"
#include "train/learn/metrics.h"

namespace welkin::train {
namespace {

constexpr double kTwoPi = 2 * std::numbers::pi;

at::Tensor wave(int64_t points, double waves, double phase = 0.4) {
  return at::cos(at::arange(points, at::kDouble).mul(kTwoPi * waves / static_cast<double>(points)).add(phase));
}

// Transforms of n points sum over n terms, in log2(n) steps; n is a generous length.
testing::AssertionResult only_at(const at::Tensor& spectrum, int64_t place, double power, int64_t points) {
  at::Tensor wanted = at::zeros_like(spectrum);
  wanted[place] = power;
  return tests::close(spectrum, wanted, at::kDouble, points);
}

TEST(ZonalSpectrum, OfOneWaveIsOneLine) {
  for (const int64_t points : {16, 15}) {
    const at::Tensor field = wave(points, 3).mul(2).expand({1, 1, 4, points});
    EXPECT_TRUE(only_at(zonal_spectrum(field, at::ones({4}))[0][0], 3, 2.0, points)) << points;  // amplitude 2: mean square 2
  }
  const at::Tensor nyquist = wave(8, 4, 0).expand({1, 1, 2, 8});
  EXPECT_TRUE(only_at(zonal_spectrum(nyquist, at::ones({2}))[0][0], 4, 1.0, 8));
  EXPECT_TRUE(only_at(zonal_spectrum(at::ones({1, 1, 2, 8}).mul(3), at::ones({2}))[0][0], 0, 9.0, 8));
}

TEST(ZonalSpectrum, AddsUpToTheWeightedMeanSquare) {
  const at::Tensor fields = tests::test_values({2, 3, 5, 12}, 1);
  const at::Tensor weights = latitude_weights(5);
  const at::Tensor mean_square = fields.square().mul(weights.view({1, 1, -1, 1})).mean({2, 3});
  EXPECT_TRUE(tests::close(zonal_spectrum(fields, weights).sum(2), mean_square, at::kDouble, 60));
}

TEST(RadialSpectrum, OfOnePlaneWaveIsOneShell) {
  const int64_t n = 12;
  const auto along = [&](int64_t waves, at::IntArrayRef shape) { return wave(n, static_cast<double>(waves)).view(shape); };
  const at::Tensor ones = at::ones({n, n, n}, at::kDouble);
  EXPECT_TRUE(only_at(radial_spectrum(ones.mul(along(2, {n, 1, 1})).unsqueeze(0).unsqueeze(0))[0][0], 2, 0.5, n * n * n));
  EXPECT_TRUE(only_at(radial_spectrum(ones.mul(along(5, {1, 1, n})).unsqueeze(0).unsqueeze(0))[0][0], 5, 0.5, n * n * n));
  // waves (3, 4) along two axes: length 5, product of two cosines
  const at::Tensor both = ones.mul(along(3, {n, 1, 1})).mul(along(4, {1, n, 1}));
  EXPECT_TRUE(only_at(radial_spectrum(both.unsqueeze(0).unsqueeze(0))[0][0], 5, 0.25, n * n * n));
}

TEST(RadialSpectrum, AddsUpToTheMeanSquareForAnyEdges) {
  for (const std::vector<int64_t>& edges : {std::vector<int64_t>{4, 6, 8}, {5, 4, 7}, {1, 3, 2}}) {
    const at::Tensor box = tests::test_values({2, 2, edges[0], edges[1], edges[2]}, 2);
    const at::Tensor mean_square = box.square().mean({2, 3, 4});
    EXPECT_TRUE(tests::close(radial_spectrum(box).sum(2), mean_square, at::kDouble, edges[0] * edges[1] * edges[2]));
  }
}

TEST(RadialSpectrum, OfAnOblongBoxCountsWavesPerLongestEdge) {
  const at::Tensor box = wave(4, 1).view({4, 1, 1}).expand({4, 8, 8}).unsqueeze(0).unsqueeze(0);
  EXPECT_TRUE(only_at(radial_spectrum(box)[0][0], 2, 0.5, 256));  // one wave in 4 cells is two in 8
}

// Computed by a plain discrete Fourier sum in Python: cells (i * i + 3 * j + 7 * k) % 11 of a box 2 x 3 x 4.
TEST(RadialSpectrum, EqualsAnIndependentComputation) {
  std::vector<double> cells;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) cells.push_back((i * i + 3 * j + 7 * k) % 11);
    }
  }
  const at::Tensor spectrum = radial_spectrum(at::tensor(cells, at::kDouble).view({1, 1, 2, 3, 4}))[0][0];
  const at::Tensor wanted =
      at::tensor({23.36111111111111, 1.8715277777777775, 4.402777777777779, 3.7812500000000013}, at::kDouble);
  EXPECT_TRUE(tests::close(spectrum, wanted, at::kDouble, 24));
}

TEST(SmallScales, BeginAboveHalfOfTheNyquistWavenumber) {
  const at::Tensor spectrum = at::ones({2, 9});  // 16 points: wavenumbers 0 to 8, Nyquist 8
  EXPECT_EQ(small_scale_power(spectrum, 16)[0].item<double>(), 4.0);
}

}  // namespace
}  // namespace welkin::train
