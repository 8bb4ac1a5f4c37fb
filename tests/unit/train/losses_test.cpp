// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "golden_folder.h"
#include "train/loss.h"
#include "train/reference/stored_tensors.h"

namespace welkin::train {
namespace {

using reference::StoredTensors;

double largest(const at::Tensor& values) { return values.abs().max().item<double>(); }

struct LossCase {
  std::string tensors;      // "vit0"
  std::string loss;         // "l2_loss": names <tensors>.<loss>_<f32|f64>, and _grad
  double lambda = -1;       // -1: relative L2
  std::string suffix = {};  // ".lambda1"
  double tolerance_f32 = 2e-6;
};

// Loss and gradient in one precision, as batch mean.
void expect_golden(const StoredTensors& golden, const LossCase& c, bool is_double) {
  const std::string kind = is_double ? "_f64" : "_f32";
  const auto dtype = is_double ? at::kDouble : at::kFloat;
  const double tolerance = is_double ? 1e-12 : c.tolerance_f32;
  const at::Tensor prediction = golden.get(c.tensors + ".pred").to(dtype).requires_grad_();
  const at::Tensor target = golden.get(c.tensors + ".target").to(dtype);
  const LossPtr loss = c.lambda < 0 ? relative_l2() : l1_rho(c.lambda);
  const at::Tensor mean = loss->per_sample(prediction, target).mean();
  const double expected = golden.number(c.tensors + "." + c.loss + c.suffix + kind);
  EXPECT_NEAR(mean.item<double>(), expected, tolerance * expected) << c.tensors << c.suffix << kind;
  mean.backward();
  const at::Tensor gradient = golden.get(c.tensors + "." + c.loss + "_grad" + c.suffix + kind);
  EXPECT_LE(largest(prediction.grad() - gradient), tolerance * largest(gradient)) << c.tensors << c.suffix << kind;
}

TEST(Losses, RelativeL2EqualsTheReference) {
  const auto folder = golden_folder("losses_metrics");
  WELKIN_NEED_GOLDEN(folder);
  const StoredTensors golden(folder / "data.safetensors");
  for (const char* tensors : {"vit0", "vit1", "vit2"}) {
    for (const bool is_double : {false, true}) expect_golden(golden, {.tensors = tensors, .loss = "l2_loss"}, is_double);
  }
}

TEST(Losses, L1RhoEqualsTheReferenceForEveryLambda) {
  const auto folder = golden_folder("losses_metrics");
  WELKIN_NEED_GOLDEN(folder);
  const StoredTensors golden(folder / "data.safetensors");
  const double lambdas[] = {0.0, 0.01, 1.0};
  for (int i = 0; i < 3; ++i) {
    const LossCase c{.tensors = "unet0",
                     .loss = "loss_func",
                     .lambda = lambdas[i],
                     .suffix = ".lambda" + std::to_string(i),
                     .tolerance_f32 = i == 0 ? 2e-6 : 5e-6};
    for (const bool is_double : {false, true}) expect_golden(golden, c, is_double);
  }
}

TEST(Losses, OfPartsOfASampleAddUp) {
  const at::Tensor prediction = at::ones({2, 3, 4, 6}).cumsum(3) * 0.1;
  const at::Tensor target = at::ones({2, 3, 4, 6}).cumsum(2);
  for (const LossPtr& loss : {relative_l2(), l1_rho(0.5)}) {
    const auto part = [&](int64_t row) { return loss->partial(prediction.narrow(2, row, 2), target.narrow(2, row, 2)); };
    const at::Tensor whole = loss->per_sample(prediction, target);
    EXPECT_LE(largest(loss->finish(part(0) + part(2)) - whole), 1e-6 * largest(whole));
  }
}

TEST(Losses, APerfectPredictionHasAFiniteGradient) {
  const at::Tensor target = at::ones({2, 3, 4, 4});
  const at::Tensor prediction = target.clone().requires_grad_();
  const at::Tensor loss = relative_l2()->per_sample(prediction, target).sum();
  loss.backward();
  EXPECT_LT(loss.item<double>(), 1e-15);
  EXPECT_TRUE(at::isfinite(prediction.grad()).all().item<bool>());
}

TEST(Losses, WithoutLambdaTheDensityIsNeverExponentiated) {
  const at::Tensor prediction = at::full({1, 5, 2, 2, 2}, 100.0).requires_grad_();
  const at::Tensor loss = l1_rho(0)->per_sample(prediction, at::zeros({1, 5, 2, 2, 2})).sum();
  loss.backward();
  EXPECT_FLOAT_EQ(loss.item<float>(), 100.0f);
  EXPECT_TRUE(at::isfinite(prediction.grad()).all().item<bool>());
  EXPECT_FALSE(std::isfinite(l1_rho(1)->per_sample(prediction, at::zeros({1, 5, 2, 2, 2})).item<double>()));
}

TEST(Losses, AccumulateHalfPrecisionInFloat32) {
  const at::Tensor target = at::ones({1, 1, 256, 512}).to(at::kHalf);
  const at::Tensor sums = relative_l2()->partial(target * 0.5, target);
  EXPECT_EQ(sums.scalar_type(), at::kFloat);
  EXPECT_FLOAT_EQ(sums.select(1, 1).item<float>(), 131072.0f);  // beyond fp16
}

}  // namespace
}  // namespace welkin::train
