// SPDX-License-Identifier: Apache-2.0
// Optimizers and norms by the way of a GPU, with its kernels run on the CPU, against the CPU's own way.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sin.h>
#include <gtest/gtest.h>

#include "device_on_cpu.h"
#include "tolerance.h"
#include "train/learn/gradients.h"
#include "train/optim/optimizer.h"

namespace welkin::train {
namespace {

at::Tensor waves(int64_t count, double phase) { return at::sin(at::arange(count, at::kFloat) * 0.37 + phase); }

// Weights of a few shapes, one of permuted dims, one that does not decay, after some steps of which one is skipped.
std::vector<at::Tensor> trained(const OptimizerFactory& make) {
  config::RunConfig config;
  config.optimizer.betas = {0.9, 0.95};
  config.optimizer.weight_decay = 0.1;
  config.optimizer.momentum = 0.9;
  std::vector<at::Tensor> weights{waves(4097, 0), waves(24, 1).view({2, 3, 4}).permute({2, 0, 1}), waves(5, 2)};
  const OptimizerPtr optimizer = make(config, {{"a", weights[0], true}, {"b", weights[1], true}, {"c", weights[2], false}});
  for (int step = 0; step < 6; ++step) {
    for (const at::Tensor& weight : weights) weight.mutable_grad() = weight * 0.5 + 0.01 * step;
    optimizer->step(
        {.rate = at::full({}, 0.01 / (step + 1), at::kDouble), .found_inf = at::full({}, step == 3 ? 1.0 : 0.0, at::kFloat)});
  }
  for (const NamedState& state : optimizer->states()) weights.push_back(state.value);
  return weights;
}

TEST(DeviceOptimizer, EqualsThatOfTheCpuToRounding) {
  for (const OptimizerFactory& make : {OptimizerFactory(adam), OptimizerFactory(adamw), OptimizerFactory(sgd)}) {
    const std::vector<at::Tensor> wanted = trained(make);
    const tests::DeviceUpdateOnCpu on_cpu;
    const std::vector<at::Tensor> got = trained(make);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_TRUE(tests::close(got[i], wanted[i], at::kFloat, 64)) << i;
    }
  }
}

// What unscaling and clipping multiply by is folded into the update: a power of two, so that the bits are the same. Adam with
// decay in the gradient, without which it does not see a scale.
TEST(DeviceOptimizer, GradientScaleIsPartOfTheUpdate) {
  const tests::DeviceUpdateOnCpu on_cpu;
  config::RunConfig config;
  config.optimizer.betas = {0.9, 0.95};
  config.optimizer.weight_decay = 0.1;
  for (const OptimizerFactory& make : {OptimizerFactory(adam), OptimizerFactory(sgd)}) {
    const auto stepped = [&](double of_gradient, const at::Tensor& scale) {
      const at::Tensor weight = waves(37, 0);
      const OptimizerPtr optimizer = make(config, {{"w", weight, true}});
      weight.mutable_grad() = waves(37, 1) * of_gradient;
      optimizer->step(
          {.rate = at::full({}, 0.01, at::kDouble), .found_inf = at::full({}, 0, at::kFloat), .gradient_scale = scale});
      return weight;
    };
    EXPECT_TRUE(at::equal(stepped(8, at::full({}, 0.125, at::kFloat)), stepped(1, {})));
    EXPECT_FALSE(at::equal(stepped(8, {}), stepped(1, {})));
  }
}

TEST(DeviceOptimizer, NormIsThatOfTheCpu) {
  const std::vector<at::Tensor> gradients{waves(40001, 0), waves(24, 1).view({4, 6}).t(), waves(1, 2)};
  const at::Tensor wanted = global_norm(gradients);
  const tests::DeviceUpdateOnCpu on_cpu;
  EXPECT_TRUE(tests::close(global_norm(gradients), wanted, at::kFloat, 64));
}

}  // namespace
}  // namespace welkin::train
