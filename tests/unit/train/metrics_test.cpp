// SPDX-License-Identifier: Apache-2.0
#include "train/metrics.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "golden_folder.h"
#include "train/reference/stored_tensors.h"

namespace welkin::train {
namespace {

double largest_gap(const at::Tensor& a, const at::Tensor& b) { return (a.to(at::kDouble) - b).abs().max().item<double>(); }

TEST(Metrics, EqualTheReferenceWithTheExactPi) {
  const auto folder = golden_folder("losses_metrics");
  WELKIN_NEED_GOLDEN(folder);
  const reference::StoredTensors golden(folder / "data.safetensors");
  for (const std::string name : {"vit0", "vit1", "vit2"}) {
    const auto wanted = [&](const std::string& what) { return golden.get(name + "." + what + "_f64_exact_pi"); };
    const at::Tensor prediction = golden.get(name + ".pred").to(at::kDouble);
    const at::Tensor target = golden.get(name + ".target").to(at::kDouble);
    const at::Tensor weights = latitude_weights(target.size(2));
    EXPECT_LE(largest_gap(weights, wanted("lat_weight")), 1e-12) << name;
    const WeightedSums sums = weighted_sums(prediction, target, weights);
    const at::Tensor rmse = weighted_rmse(sums, target.size(2) * target.size(3));
    EXPECT_LE(largest_gap(rmse, wanted("weighted_rmse_channels")), 1e-12) << name;
    EXPECT_LE(largest_gap(rmse.mean(0), wanted("weighted_rmse")), 1e-12) << name;
    EXPECT_LE(largest_gap(weighted_acc(sums), wanted("weighted_acc_channels")), 1e-12) << name;
    EXPECT_LE(largest_gap(weighted_acc(sums).mean(0), wanted("weighted_acc")), 1e-12) << name;
  }
}

TEST(Metrics, InFloat32StayWithinRounding) {
  const auto folder = golden_folder("losses_metrics");
  WELKIN_NEED_GOLDEN(folder);
  const reference::StoredTensors golden(folder / "data.safetensors");
  const at::Tensor prediction = golden.get("vit1.pred");
  const at::Tensor target = golden.get("vit1.target");
  const WeightedSums sums = weighted_sums(prediction, target, latitude_weights(target.size(2)));
  EXPECT_EQ(sums.product.scalar_type(), at::kFloat);
  EXPECT_LE(
      largest_gap(weighted_rmse(sums, target.size(2) * target.size(3)), golden.get("vit1.weighted_rmse_channels_f64_exact_pi")),
      2e-5);
}

TEST(Metrics, WeightsHaveMeanOneAndNoNegativePole) {
  const at::Tensor weights = latitude_weights(360);
  EXPECT_NEAR(weights.mean().item<double>(), 1.0, 1e-12);
  EXPECT_GE(weights.min().item<double>(), 0.0);
  EXPECT_NEAR(weights.max().item<double>(), 1.5752, 1e-4);
}

TEST(Metrics, WeightsFollowGivenLatitudes) {
  const at::Tensor weights = latitude_weights(3, {60, 0, -60});
  EXPECT_NEAR(weights[0].item<double>(), 0.75, 1e-12);
  EXPECT_NEAR(weights[1].item<double>(), 1.5, 1e-12);
  EXPECT_NEAR(latitude_weights(1).item<double>(), 1.0, 1e-12);
}

}  // namespace
}  // namespace welkin::train
