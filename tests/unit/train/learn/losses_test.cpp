// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "device_on_cpu.h"
#include "gradient_check.h"
#include "number_close.h"
#include "train/learn/loss.h"

namespace welkin::train {
namespace {

// Reference cases of kind `losses` compare values and gradients with the tutorials'; here with the definitions, in double.
TEST(Losses, EqualTheirDefinitions) {
  const at::Tensor p = tests::test_values({3, 2, 4, 5}, 1), t = tests::test_values({3, 2, 4, 5}, 2);
  const at::Tensor norms = (p - t).flatten(1).norm(2, 1) / t.flatten(1).norm(2, 1);
  EXPECT_TRUE(tests::close(relative_l2()->per_sample(p, t), norms, at::kDouble, 40));
  const at::Tensor density = (at::exp(14 * p.select(1, 0)) - at::exp(14 * t.select(1, 0))).abs().flatten(1).mean(1);
  const at::Tensor difference = (p - t).abs().flatten(1).mean(1);
  EXPECT_TRUE(tests::close(l1_rho(0.3)->per_sample(p, t), difference + 0.3 * density, at::kDouble, 40));
  EXPECT_TRUE(tests::close(l1_rho(0)->per_sample(p, t), difference, at::kDouble, 40));
}

// Predictions and targets differ by more than a step of the difference everywhere, so that no L1 crosses zero.
TEST(Losses, GradientsAreThoseOfTheValues) {
  const at::Tensor target = tests::test_values({2, 3, 2, 5}, 3).mul(0.1);
  for (const LossPtr& loss : {relative_l2(), l1_rho(0.0), l1_rho(0.01)}) {
    const auto value = [&](const std::vector<at::Tensor>& in) { return loss->per_sample(in[0], target); };
    EXPECT_TRUE(tests::gradcheck(value, {tests::test_values({2, 3, 2, 5}, 4).mul(0.1)}));
  }
}

TEST(Losses, ByTheWayOfAGpuAreTheSame) {
  for (const LossPtr& loss : {relative_l2(), l1_rho(0.0), l1_rho(0.01)}) {
    const auto run = [&](at::ScalarType type) {
      const at::Tensor target = tests::test_values({2, 3, 4, 33}, 5).mul(0.1).to(type);
      const at::Tensor prediction = tests::test_values({2, 3, 4, 33}, 6).mul(0.1).to(type).requires_grad_();
      const at::Tensor value = loss->finish(loss->partial(prediction.narrow(2, 0, 2), target.narrow(2, 0, 2)) +
                                            loss->partial(prediction.narrow(2, 2, 2), target.narrow(2, 2, 2)));
      value.sum().backward();
      return std::pair(value, prediction.grad());
    };
    const auto wanted = run(at::kDouble);
    const tests::ErrorSumsOnCpu on_cpu;
    const auto got = run(at::kFloat);
    EXPECT_EQ(on_cpu.calls(), 4);
    EXPECT_TRUE(tests::close(got.first, wanted.first, at::kFloat, 396));
    EXPECT_TRUE(tests::close(got.second, wanted.second, at::kFloat, 396));
  }
}

TEST(Losses, OfPartsOfASampleAddUp) {
  const at::Tensor prediction = at::ones({2, 3, 4, 6}).cumsum(3) * 0.1;
  const at::Tensor target = at::ones({2, 3, 4, 6}).cumsum(2);
  for (const LossPtr& loss : {relative_l2(), l1_rho(0.5)}) {
    const auto part = [&](int64_t row) { return loss->partial(prediction.narrow(2, row, 2), target.narrow(2, row, 2)); };
    const at::Tensor whole = loss->per_sample(prediction, target);
    EXPECT_TRUE(tests::close(loss->finish(part(0) + part(2)), whole, at::kFloat, 72));
  }
}

TEST(Losses, APerfectPredictionHasAFiniteGradient) {
  const at::Tensor target = at::ones({2, 3, 4, 4});
  const at::Tensor prediction = target.clone().requires_grad_();
  const at::Tensor loss = relative_l2()->per_sample(prediction, target).sum();
  loss.backward();
  EXPECT_LE(loss.item<double>(), kFp32.roundoff * kFp32.roundoff);
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
