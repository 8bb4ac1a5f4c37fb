// SPDX-License-Identifier: Apache-2.0
// Bias and leaky ReLU by the way of a GPU: its kernels, run on the CPU, under autograd, against aten's operators in double.
#include "ops/convolution/bias_leaky_relu.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/leaky_relu.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>
#include <tuple>
#include <vector>

#include "device_on_cpu.h"
#include "gradient_check.h"
#include "ops/arithmetic/bias_leaky_relu_kernel.h"
#include "ops/convolution/convolution.h"
#include "tolerance.h"

namespace welkin::ops {
namespace {

constexpr double kSlope = 0.3;
constexpr auto kLast = at::MemoryFormat::ChannelsLast3d;

class BiasLeakyReluOnCpu : public ::testing::TestWithParam<std::tuple<int64_t, int64_t, at::ScalarType>> {
 protected:
  tests::BiasLeakyReluOnCpu on_cpu_;
};

at::Tensor box_of(int64_t depth, int64_t channels, int64_t seed, at::ScalarType type) {
  return tests::test_values({2, channels, depth, 3, 5}, seed).to(type).contiguous(kLast);
}

TEST_P(BiasLeakyReluOnCpu, EqualsAtenForwardAndBackward) {
  const auto [depth, channels, type] = GetParam();
  const at::Tensor x = box_of(depth, channels, 1, type), grad = box_of(depth, channels, 2, type);
  const at::Tensor bias = tests::test_values({channels}, 3).to(at::kFloat);
  const auto leaf = [](const at::Tensor& t, at::ScalarType to) { return t.to(to, false, true).requires_grad_(); };

  const std::vector<at::Tensor> wanted_in{leaf(x, at::kDouble), leaf(bias, at::kDouble)};
  const at::Tensor wanted = at::leaky_relu(wanted_in[0].add(wanted_in[1].view({-1, 1, 1, 1})), kSlope);
  const auto wanted_grads = torch::autograd::grad({wanted}, wanted_in, {grad.to(at::kDouble)});

  const std::vector<at::Tensor> in{leaf(x, type), leaf(bias, at::kFloat)};
  const at::Tensor own = in[0].mul(1);  // as a matmul is: of nobody else
  const at::Tensor got = bias_leaky_relu(own, in[1], kSlope);
  const auto grads = torch::autograd::grad({got}, in, {grad});
  EXPECT_GT(tests::BiasLeakyReluOnCpu::calls(), 0);
  EXPECT_EQ(got.const_data_ptr(), own.const_data_ptr());
  EXPECT_EQ(grads[1].scalar_type(), at::kFloat);
  EXPECT_TRUE(tests::close(got, wanted, type, 1));
  // Rounding the result can move no number over zero, and the sums are of gradients before they are rounded.
  EXPECT_TRUE(tests::close(grads[0], wanted_grads[0], type, 1));
  EXPECT_TRUE(tests::close(grads[1], wanted_grads[1], at::kFloat, 30 * depth));
}

// Packs and single columns, fewer and more of them than threads, rows of one chunk and of several, a last chunk that is short.
INSTANTIATE_TEST_SUITE_P(Shapes, BiasLeakyReluOnCpu,
                         ::testing::Combine(::testing::Values(1, 3), ::testing::Values(1, 5, 64, 136, 2056),
                                            ::testing::Values(at::kFloat, at::kHalf, at::kBFloat16)));

TEST_P(BiasLeakyReluOnCpu, AddsABiasAlone) {
  const auto [depth, channels, type] = GetParam();
  const at::Tensor x = box_of(depth, channels, 1, type), grad = box_of(depth, channels, 2, type);
  const std::vector<at::Tensor> in{x.clone().requires_grad_(), tests::test_values({channels}, 3).to(at::kFloat).requires_grad_()};
  const at::Tensor got = bias_leaky_relu(in[0].mul(1), in[1], 1);
  const at::Tensor wanted = x.to(at::kDouble).add(in[1].detach().to(at::kDouble).view({-1, 1, 1, 1}));
  EXPECT_TRUE(tests::close(got, wanted, type, 1));
  const auto grads = torch::autograd::grad({got}, in, {grad});
  EXPECT_TRUE(at::equal(grads[0], grad));
  EXPECT_TRUE(tests::close(grads[1], grad.to(at::kDouble).sum(at::IntArrayRef({0, 2, 3, 4})), at::kFloat, 30 * depth));
}

TEST(BiasLeakyRelu, IsTheEndOfAConvolutionWhoseResultLiesChannelsLast) {
  const ConvolutionParams rule{.stride = {2, 2, 2}, .padding = {1, 1, 1}};
  const std::vector<at::Tensor> in{tests::test_values({2, 6, 8, 8, 8}, 1).to(at::kFloat).contiguous(kLast).requires_grad_(),
                                   tests::test_values({12, 6, 4, 4, 4}, 2).to(at::kFloat).contiguous(kLast).requires_grad_(),
                                   tests::test_values({12}, 3).to(at::kFloat).requires_grad_()};
  const at::Tensor wanted = convolution3d_reference({in[0]}, in[1], in[2], rule, {kSlope});
  const at::Tensor grad = tests::test_values(wanted.sizes(), 4).to(at::kFloat);
  const auto wanted_grads = torch::autograd::grad({wanted}, in, {grad});
  const tests::BiasLeakyReluOnCpu on_cpu;
  const at::Tensor got = convolution3d({in[0]}, in[1], in[2], rule, {kSlope});
  const auto grads = torch::autograd::grad({got}, in, {grad});
  EXPECT_GT(tests::BiasLeakyReluOnCpu::calls(), 0);
  EXPECT_TRUE(tests::close(got, wanted, at::kFloat, 6 * 64));
  for (size_t i = 0; i < in.size(); ++i) EXPECT_TRUE(tests::close(grads[i], wanted_grads[i], at::kFloat, 2 * 512)) << i;
}

TEST(BiasLeakyRelu, TakesWhatItHasAKernelFor) {
  const at::Tensor bias = tests::test_values({4}, 1).to(at::kFloat);
  EXPECT_FALSE(fuses_bias_leaky_relu(c10::kCPU, bias, kSlope)) << "a GPU's alone";
  const tests::BiasLeakyReluOnCpu on_cpu;
  EXPECT_TRUE(fuses_bias_leaky_relu(c10::kCPU, bias, kSlope));
  EXPECT_TRUE(fuses_bias_leaky_relu(c10::kCPU, bias, 0));
  EXPECT_TRUE(fuses_bias_leaky_relu(c10::kCPU, bias, 1)) << "the bias alone, whose gradient is summed in float32";
  EXPECT_FALSE(fuses_bias_leaky_relu(c10::kCPU, bias, -0.5)) << "the result's sign would not be that of the sum";
  EXPECT_FALSE(fuses_bias_leaky_relu(c10::kCPU, bias.to(at::kBFloat16), kSlope));
  EXPECT_FALSE(fuses_bias_leaky_relu(c10::kCPU, {}, kSlope));
}

TEST(BiasLeakyRelu, AConvolutionWhoseResultLiesOtherwiseHasAtensEnd) {
  const tests::BiasLeakyReluOnCpu on_cpu;
  const ConvolutionParams rule{.stride = {2, 2, 2}, .padding = {1, 1, 1}};
  const at::Tensor x = tests::test_values({2, 6, 8, 8, 8}, 1), weight = tests::test_values({12, 6, 4, 4, 4}, 2);
  const at::Tensor bias = tests::test_values({12}, 3).to(at::kFloat);
  for (const double slope : {0.0, kSlope}) {
    const at::Tensor got = convolution3d({x}, weight, bias, rule, {slope});
    EXPECT_TRUE(
        tests::close(got, convolution3d_reference({x}, weight, bias.to(at::kDouble), rule, {slope}), at::kDouble, 6 * 64));
  }
  EXPECT_EQ(tests::BiasLeakyReluOnCpu::calls(), 0);
}

// What float16 overflows to must not become NaN where a ReLU makes it zero: the loss scaler would refuse the step.
TEST(BiasLeakyRelu, AReluMakesInfinitiesZero) {
  const tests::BiasLeakyReluOnCpu on_cpu;
  const at::Tensor bias = tests::test_values({8}, 2).to(at::kFloat).requires_grad_();
  const at::Tensor x = box_of(1, 8, 1, at::kHalf).fill_(-std::numeric_limits<double>::infinity()).requires_grad_();
  const at::Tensor got = bias_leaky_relu(x.mul(1), bias, 0);
  EXPECT_EQ(got.abs().max().item<float>(), 0);
  const at::Tensor grad = got.detach().clone().fill_(std::numeric_limits<double>::infinity());
  for (const at::Tensor& of : torch::autograd::grad({got}, {x, bias}, {grad})) EXPECT_EQ(of.abs().max().item<float>(), 0);
}

TEST(BiasLeakyRelu, NaNStaysAndHasAGradient) {
  const tests::BiasLeakyReluOnCpu on_cpu;
  const at::Tensor x = box_of(1, 8, 1, at::kFloat).fill_(std::numeric_limits<double>::quiet_NaN());
  const at::Tensor bias = tests::test_values({8}, 2).to(at::kFloat).requires_grad_();
  const at::Tensor got = bias_leaky_relu(x, bias, kSlope);
  EXPECT_TRUE(got.isnan().all().item<bool>());
  got.sum().backward();
  EXPECT_TRUE(bias.grad().isfinite().all().item<bool>());
}

}  // namespace
}  // namespace welkin::ops
