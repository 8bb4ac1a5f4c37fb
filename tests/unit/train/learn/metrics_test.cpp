// SPDX-License-Identifier: Apache-2.0
#include "train/learn/metrics.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "golden_folder.h"
#include "tolerance.h"
#include "verify/cases/stored_tensors.h"

namespace welkin::train {
namespace {

TEST(Metrics, EqualTheReferenceWithTheExactPi) {
  const auto folder = golden_folder("losses_metrics");
  WELKIN_NEED_GOLDEN(folder);
  const verify::StoredTensors golden(folder / "data.safetensors");
  for (const std::string name : {"vit0", "vit1", "vit2"}) {
    const auto wanted = [&](const std::string& what) { return golden.get(name + "." + what + "_f64_exact_pi"); };
    const at::Tensor prediction = golden.get(name + ".pred").to(at::kDouble);
    const at::Tensor target = golden.get(name + ".target").to(at::kDouble);
    const at::Tensor weights = latitude_weights(target.size(2));
    EXPECT_TRUE(tests::close(weights, wanted("lat_weight"), at::kDouble, target.size(2))) << name;
    const WeightedSums sums = weighted_sums(prediction, target, weights);
    const int64_t points = target.size(2) * target.size(3);
    const at::Tensor rmse = weighted_rmse(sums, points);
    EXPECT_TRUE(tests::close(rmse, wanted("weighted_rmse_channels"), at::kDouble, points)) << name;
    EXPECT_TRUE(tests::close(rmse.mean(0), wanted("weighted_rmse"), at::kDouble, points)) << name;
    EXPECT_TRUE(tests::close(weighted_acc(sums), wanted("weighted_acc_channels"), at::kDouble, points)) << name;
    EXPECT_TRUE(tests::close(weighted_acc(sums).mean(0), wanted("weighted_acc"), at::kDouble, points)) << name;
  }
}

TEST(Metrics, InFloat32StayWithinRounding) {
  const auto folder = golden_folder("losses_metrics");
  WELKIN_NEED_GOLDEN(folder);
  const verify::StoredTensors golden(folder / "data.safetensors");
  const at::Tensor prediction = golden.get("vit1.pred");
  const at::Tensor target = golden.get("vit1.target");
  const WeightedSums sums = weighted_sums(prediction, target, latitude_weights(target.size(2)));
  EXPECT_EQ(sums.product.scalar_type(), at::kFloat);
  const int64_t points = target.size(2) * target.size(3);
  EXPECT_TRUE(
      tests::close(weighted_rmse(sums, points), golden.get("vit1.weighted_rmse_channels_f64_exact_pi"), at::kFloat, points));
}

TEST(Metrics, WeightsHaveMeanOneAndNoNegativePole) {
  const at::Tensor weights = latitude_weights(360);
  EXPECT_TRUE(tests::close(weights.mean().item<double>(), 1.0, kFp64, 360));
  EXPECT_GE(weights.min().item<double>(), 0.0);
  // rows from pole to pole: the sum of the cosines is cot(pi / 718), the largest is cos(pi / 718)
  EXPECT_TRUE(tests::close(weights.max().item<double>(), 360 * std::sin(std::numbers::pi / 718), kFp64, 360));
}

TEST(Metrics, RowsOfAPlaneWeighTheSame) {
  data::SampleSpec spec;
  spec.target.shape = {1, 3, 4};
  EXPECT_TRUE(row_weights(spec).equal(at::ones({3}, at::kDouble)));
  spec.latitude = {60, 0, -60};
  EXPECT_TRUE(row_weights(spec).equal(latitude_weights(3, spec.latitude)));
  spec.latitude.clear();
  spec.geometry = data::Geometry::Sphere;
  EXPECT_TRUE(row_weights(spec).equal(latitude_weights(3)));
}

TEST(Metrics, WeightsFollowGivenLatitudes) {
  const at::Tensor weights = latitude_weights(3, {60, 0, -60});
  EXPECT_TRUE(tests::close(weights[0].item<double>(), 0.75, kFp64, 8));
  EXPECT_TRUE(tests::close(weights[1].item<double>(), 1.5, kFp64, 8));
  EXPECT_EQ(latitude_weights(1).item<double>(), 1.0);
}

}  // namespace
}  // namespace welkin::train
