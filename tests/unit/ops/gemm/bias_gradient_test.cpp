// SPDX-License-Identifier: Apache-2.0
// The gradient of a linear layer's bias by the way of a GPU: its kernel, run on the CPU.
#include "ops/gemm/bias_gradient.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>

#include <string>
#include <vector>

#include "device_on_cpu.h"
#include "gradient_check.h"
#include "ops/base/autocast.h"
#include "tolerance.h"

namespace welkin::ops {
namespace {

TEST(BiasGradient, IsSummedInFloat32AndTheRestIsAtens) {
  const tests::BiasLeakyReluOnCpu on_cpu;
  const at::Tensor x = tests::test_values({7, 30, 16}, 1).to(at::kBFloat16).requires_grad_();
  const at::Tensor weight = tests::test_values({24, 16}, 2).to(at::kFloat).requires_grad_();
  const at::Tensor bias = tests::test_values({24}, 3).to(at::kFloat).requires_grad_();
  const AutocastGuard autocast(at::kCPU, at::kBFloat16);
  ASSERT_TRUE(sums_bias_gradient(x, bias));
  const std::vector<at::Tensor> in{x, weight, bias};
  const at::Tensor wanted = at::linear(x, weight, bias), got = linear_with_own_bias_gradient(x, weight, bias);
  EXPECT_TRUE(at::equal(got, wanted));
  EXPECT_EQ(got.grad_fn()->name().find("CopySlices"), std::string::npos) << "that copies the gradient";
  const at::Tensor grad = tests::test_values({7, 30, 24}, 4).to(at::kBFloat16);
  const auto wanted_grads = torch::autograd::grad({wanted}, in, {grad}), grads = torch::autograd::grad({got}, in, {grad});
  EXPECT_TRUE(at::equal(grads[0], wanted_grads[0]));
  EXPECT_TRUE(at::equal(grads[1], wanted_grads[1]));
  EXPECT_EQ(grads[2].scalar_type(), at::kFloat);
  EXPECT_TRUE(tests::close(grads[2], grad.to(at::kDouble).sum(at::IntArrayRef({0, 1})), at::kFloat, 30));
  EXPECT_EQ(tests::BiasLeakyReluOnCpu::calls(), 1);
}

TEST(BiasGradient, IsAtensWhereNothingLearnsOrFloat32IsMultiplied) {
  const tests::BiasLeakyReluOnCpu on_cpu;
  const at::Tensor x = tests::test_values({3, 16}, 1).to(at::kBFloat16);
  const at::Tensor bias = tests::test_values({24}, 3).to(at::kFloat), learning = bias.clone().requires_grad_();
  EXPECT_TRUE(sums_bias_gradient(x, learning));
  EXPECT_FALSE(sums_bias_gradient(x, bias));
  EXPECT_FALSE(sums_bias_gradient(x.to(at::kFloat), learning));
  EXPECT_FALSE(sums_bias_gradient(x, {}));
  EXPECT_FALSE(sums_bias_gradient(x, learning.to(at::kBFloat16)));
  const at::NoGradGuard without;
  EXPECT_FALSE(sums_bias_gradient(x, learning));
}

TEST(BiasGradient, OfAnotherDeviceIsAtens) {
  EXPECT_FALSE(sums_bias_gradient(tests::test_values({3, 16}, 1).to(at::kBFloat16),
                                  tests::test_values({24}, 3).to(at::kFloat).requires_grad_()));
}

}  // namespace
}  // namespace welkin::ops
