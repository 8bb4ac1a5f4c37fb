// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/gelu_linear.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <tuple>

#include "device_on_cpu.h"
#include "gradient_check.h"
#include "ops/arithmetic/bias_gelu_kernel.h"
#include "ops/base/autocast.h"
#include "ops/device/device_ops.h"
#include "ops/gemm/mixed_matmul.h"

namespace welkin::ops {
namespace {

at::Tensor own(const std::vector<at::Tensor>& in) { return gelu_linear(in[0], in[1], in[2]); }
at::Tensor reference(const std::vector<at::Tensor>& in) { return gelu_linear_reference(in[0], in[1], in[2]); }

std::vector<at::Tensor> operands(at::IntArrayRef x, int64_t out) {
  return {tests::test_values(x, 1), tests::test_values({out, x.back()}, 2), tests::test_values({out}, 3)};
}

TEST(GeluLinear, GradientsAreRight) { EXPECT_TRUE(tests::gradcheck(own, operands({2, 3, 5}, 4))); }

TEST(GeluLinear, IsTheReferenceInEveryType) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    for (const auto& [rows, in, out] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {7, 33, 5}, {3, 48, 130}}) {
      std::vector<at::Tensor> inputs = operands({2, rows, in}, out);
      inputs[1] = inputs[1].t().contiguous().t();  // other strides
      for (at::Tensor& input : inputs) input = input.to(type);
      EXPECT_TRUE(tests::same_results(own, reference, inputs, std::max({2 * rows, in, out}))) << type << " " << rows;
    }
  }
}

TEST(GeluLinear, WithoutBias) {
  const auto inputs = operands({3, 5}, 4);
  const auto form = [](at::Tensor (*f)(const at::Tensor&, const at::Tensor&, const at::Tensor&)) {
    return [f](const std::vector<at::Tensor>& in) { return f(in[0], in[1], at::Tensor()); };
  };
  EXPECT_TRUE(tests::same_results(form(gelu_linear), form(gelu_linear_reference), {inputs[0], inputs[1]}, 5));
}

std::vector<at::Tensor> with_hidden_bias(int64_t rows, int64_t in, int64_t out) {
  std::vector<at::Tensor> inputs = operands({2, rows, in}, out);
  inputs.insert(inputs.begin() + 1, tests::test_values({in}, 4));
  inputs[0] = inputs[0].mul(3);  // to where GELU's slope is far from that of the middle
  return inputs;
}

at::Tensor fused(const std::vector<at::Tensor>& in) { return bias_gelu_linear(in[0], in[1], in[2], in[3]); }
at::Tensor in_steps(const std::vector<at::Tensor>& in) { return gelu_linear_reference(in[0] + in[1], in[2], in[3]); }

TEST(BiasGeluLinear, IsTheReferenceByTheWayOfAGpu) {
  const tests::BiasGeluOnCpu on_cpu;
  for (const auto& [rows, in, out] :
       {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {7, 33, 5}, {70, 48, 13}, {300, 65, 3}, {9, 1100, 3}}) {
    std::vector<at::Tensor> inputs = with_hidden_bias(rows, in, out);
    for (at::Tensor& input : inputs) input = input.to(at::kFloat);
    const int64_t before = on_cpu.calls();
    EXPECT_TRUE(tests::same_results(fused, in_steps, inputs, std::max({2 * rows, in, out}))) << rows;
    EXPECT_EQ(on_cpu.calls(), before + 2);
  }
}

// Half a unit in the last place, and what the tail of the normal distribution may be off.
bool is_rounded_once(const at::Tensor& got, const at::Tensor& wanted) {
  const double half_unit = got.scalar_type() == at::kBFloat16 ? 1.0 / 256 : 1.0 / 2048;
  return (got.to(at::kDouble) - wanted).abs().le(wanted.abs() * half_unit + 1e-6).all().item<bool>();
}

TEST(BiasGeluLinear, KernelsOfAGpuRoundToSixteenBitsOnce) {
  const tests::BiasGeluOnCpu on_cpu;
  const int64_t rows = 140, width = 48;
  const at::Tensor bias = tests::test_values({width}, 4).to(at::kFloat);
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const at::Tensor x = at::linspace(-9, 9, rows * width, at::kFloat).view({rows, width}).to(type);
    const at::Tensor grad_out = tests::test_values({rows, width}, 5).to(type);
    const at::Tensor sum = x.to(at::kDouble) + bias, grad = at::gelu_backward(grad_out.to(at::kDouble), sum);
    EXPECT_TRUE(is_rounded_once(device_ops().gelu.forward(x, bias), at::gelu(sum))) << type;
    const GeluGradients got = device_ops().gelu.backward(grad_out.clone(), x, bias);
    EXPECT_TRUE(is_rounded_once(got.out, at::gelu(sum))) << type;
    EXPECT_TRUE(is_rounded_once(got.grad_x, grad)) << type;
    EXPECT_LT((got.grad_bias - grad.sum(0)).abs().max().item<double>(), 1e-4) << type;
  }
}

// The gradient of the second bias is a sum in float32, rounded to no 16 bits.
TEST(BiasGeluLinear, SumsTheGradientOfTheBiasInSinglePrecisionByTheWayOfAGpu) {
  const tests::BiasGeluOnCpu gelu_on_cpu;
  const tests::BiasLeakyReluOnCpu sums_on_cpu;
  const UpcastMatmulGuard as_on_a_gpu(false);  // where operands stay in 16 bits
  std::vector<at::Tensor> inputs = with_hidden_bias(150, 33, 5);
  inputs[0] = inputs[0].to(at::kBFloat16);
  inputs[2] = inputs[2].to(at::kBFloat16);
  for (const size_t bias : {1, 3}) inputs[bias] = inputs[bias].to(at::kFloat).requires_grad_();
  const at::Tensor out = fused(inputs), seed = tests::test_values(out.sizes(), 6).to(at::kBFloat16);
  const at::Tensor got = torch::autograd::grad({out}, {inputs[3]}, {seed}).at(0);
  const at::Tensor wanted = seed.to(at::kDouble).reshape({-1, 5}).sum(0);
  EXPECT_EQ(got.scalar_type(), at::kFloat);
  EXPECT_LT((got - wanted).abs().max().item<double>(), 1e-4);
}

TEST(BiasGeluLinear, IsTheReferenceOnACpu) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const auto& [rows, in, out] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {7, 33, 5}, {70, 48, 13}, {300, 65, 3}}) {
      std::vector<at::Tensor> inputs = with_hidden_bias(rows, in, out);
      for (at::Tensor& input : inputs) input = input.to(type).to(at::kFloat);
      inputs[0] = inputs[0].to(type);
      inputs[2] = inputs[2].to(type);
      inputs[3] = inputs[3].to(type);
      EXPECT_TRUE(fuses_bias_gelu(inputs[1]));
      const auto wide = [type](const std::vector<at::Tensor>& t) {
        return in_steps({t[0].to(at::kFloat), t[1], t[2].to(at::kFloat), t[3].to(at::kFloat)}).to(type);
      };
      EXPECT_TRUE(tests::same_results(fused, wide, inputs, std::max({2 * rows, in, out}))) << type << " " << rows;
    }
  }
}

// Matmuls of bfloat16 as processors with and without them make them.
TEST(GeluLinear, IsTheReferenceWhereMatmulsAreWidened) {
  for (const bool widens : {false, true}) {
    const UpcastMatmulGuard rule(widens);
    for (const auto& [rows, in, out] : {std::tuple<int64_t, int64_t, int64_t>{7, 33, 5}, {40, 48, 13}}) {
      std::vector<at::Tensor> inputs = with_hidden_bias(rows, in, out);
      for (at::Tensor& input : inputs) input = input.to(at::kBFloat16);
      EXPECT_TRUE(tests::same_results(own, reference, {inputs[0], inputs[2], inputs[3]}, std::max({2 * rows, in, out})));
      inputs[1] = inputs[1].to(at::kFloat);
      const auto wide = [](const std::vector<at::Tensor>& t) {
        return in_steps({t[0].to(at::kFloat), t[1], t[2].to(at::kFloat), t[3].to(at::kFloat)}).to(at::kBFloat16);
      };
      EXPECT_TRUE(tests::same_results(fused, wide, inputs, std::max({2 * rows, in, out}))) << rows << " " << widens;
    }
  }
}

// What a pipeline lets wait.
TEST(BiasGeluLinear, GivesTheGradientOfTheWeightAlone) {
  std::vector<at::Tensor> inputs = with_hidden_bias(40, 48, 13);
  for (at::Tensor& input : inputs) input = input.to(at::kFloat).requires_grad_();
  const at::Tensor out = fused(inputs), seed = out.detach();
  const auto all = torch::autograd::grad({out}, inputs, {seed}, /*retain_graph=*/true);
  EXPECT_TRUE(at::equal(torch::autograd::grad({out}, {inputs[2]}, {seed}).at(0), all[2]));
}

at::Tensor small_integers(at::IntArrayRef shape, uint64_t seed) {
  return tests::test_values(shape, seed).mul(4).round().to(at::kFloat);
}

// Sums of many rows, on as many threads as there may be. The matmul before them is a library's, whose order of sums may depend on
// threads: it is one of small integers, which no order rounds.
TEST(BiasGeluLinear, DoesNotDependOnThreads) {
  auto inputs = with_hidden_bias(500, 70, 9);
  for (at::Tensor& input : inputs) input = input.to(at::kFloat);
  inputs[2] = small_integers(inputs[2].sizes(), 7);
  const at::Tensor seed = small_integers({2, 500, 9}, 8);
  std::vector<at::Tensor> first;
  const int before = at::get_num_threads();
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    const auto gradient = [&] {
      const at::Tensor bias = inputs[1].detach().clone().requires_grad_();
      return torch::autograd::grad({bias_gelu_linear(inputs[0], bias, inputs[2], inputs[3])}, {bias}, {seed}).at(0);
    }();
    if (first.empty()) first.push_back(gradient);
    EXPECT_TRUE(at::equal(gradient, first[0])) << threads;
  }
  at::set_num_threads(before);
}

// The matmul comes in bfloat16, the bias stays a float32 parameter: its gradient is not rounded either.
void under_autocast_the_bias_is_taken_as_it_is() {
  const auto inputs = with_hidden_bias(150, 40, 7);
  std::vector<at::Tensor> got_in, wanted_in;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor rounded = inputs[i].to(i == 1 ? at::kFloat : at::kBFloat16);
    got_in.push_back(rounded.detach().to(i == 0 ? at::kBFloat16 : at::kFloat).requires_grad_());
    wanted_in.push_back(rounded.detach().to(at::kDouble).requires_grad_());
  }
  at::Tensor got;
  {
    const AutocastGuard autocast(at::kCPU, at::kBFloat16);
    got = fused(got_in);
  }
  EXPECT_EQ(got.scalar_type(), at::kBFloat16);
  const at::Tensor wanted = in_steps(wanted_in);
  EXPECT_TRUE(tests::close(got, wanted, at::kBFloat16, 40));
  const at::Tensor weights = tests::test_values(wanted.sizes(), 9).to(at::kBFloat16);
  got.backward(weights);
  wanted.backward(weights.to(at::kDouble));
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_TRUE(tests::close(got_in[i].grad(), wanted_in[i].grad(), at::kBFloat16, i == 0 ? 40 : 300)) << i;
    EXPECT_EQ(got_in[i].grad().scalar_type(), got_in[i].scalar_type()) << i;
  }
}

TEST(BiasGeluLinear, UnderAutocastTakesTheBiasAsItIs) {
  under_autocast_the_bias_is_taken_as_it_is();
  const tests::BiasGeluOnCpu on_cpu;
  under_autocast_the_bias_is_taken_as_it_is();
  EXPECT_EQ(on_cpu.calls(), 2);
}

// It is read number by number then.
TEST(BiasGeluLinear, OnAGpuABiasMayBeginAnywhere) {
  const tests::BiasGeluOnCpu on_cpu;
  std::vector<at::Tensor> inputs = with_hidden_bias(5, 16, 3);
  for (at::Tensor& input : inputs) input = input.to(at::kFloat);
  const std::vector<at::Tensor> aligned = inputs;
  inputs[1] = at::cat({at::zeros({1}), inputs[1]}).narrow(0, 1, 16);
  EXPECT_TRUE(at::equal(fused(inputs), fused(aligned)));
  EXPECT_TRUE(tests::same_results(fused, in_steps, inputs, 16));
}

TEST(BiasGeluLinear, ABiasOfAnotherShapeIsAtens) {
  const at::Tensor x = tests::test_values({4, 512}, 1).to(at::kFloat), weight = tests::test_values({3, 512}, 2).to(at::kFloat);
  const at::Tensor one = tests::test_values({1}, 3).to(at::kFloat).requires_grad_();
  EXPECT_THROW(bias_gelu_linear(x, tests::test_values({256}, 3).to(at::kFloat), weight, {}), c10::Error);
  const at::Tensor got = bias_gelu_linear(x, one, weight, {});
  EXPECT_TRUE(tests::close(got, gelu_linear_reference(x + one, weight, {}), at::kFloat, 512));
  got.sum().backward();
  EXPECT_EQ(one.grad().sizes(), one.sizes());
  const at::Tensor row = tests::test_values({1, 512}, 4).to(at::kFloat);
  EXPECT_TRUE(tests::close(bias_gelu_linear(x, row, weight, {}), gelu_linear_reference(x + row, weight, {}), at::kFloat, 512));
}

TEST(BiasGeluLinear, WithoutTheSecondBias) {
  auto inputs = with_hidden_bias(5, 8, 4);
  inputs.pop_back();
  for (at::Tensor& input : inputs) input = input.to(at::kFloat);
  const auto without = [](const std::vector<at::Tensor>& in) { return bias_gelu_linear(in[0], in[1], in[2], {}); };
  const auto wanted = [](const std::vector<at::Tensor>& in) { return gelu_linear_reference(in[0] + in[1], in[2], {}); };
  EXPECT_TRUE(tests::same_results(without, wanted, inputs, 10));
}

TEST(BiasGeluLinear, OtherTypesAndDevicesTakeAtensOperators) {
  const auto inputs = with_hidden_bias(3, 5, 4);
  EXPECT_TRUE(tests::gradcheck(fused, inputs));
  EXPECT_TRUE(fuses_bias_gelu(inputs[1].to(at::kFloat)));
  EXPECT_FALSE(fuses_bias_gelu(inputs[1])) << "float64";
  EXPECT_FALSE(fuses_bias_gelu(at::Tensor()));
  EXPECT_TRUE(at::equal(fused(inputs), in_steps(inputs)));
  const at::Tensor half = inputs[0].to(at::kHalf), bias = inputs[1].to(at::kFloat), weight = inputs[2].to(at::kHalf);
  EXPECT_TRUE(at::equal(bias_gelu_linear(half, bias, weight, {}), gelu_linear(half.add(bias.to(at::kHalf)), weight, {})));
  const tests::BiasGeluOnCpu on_cpu;
  EXPECT_TRUE(at::equal(fused(inputs), in_steps(inputs)));
  EXPECT_EQ(on_cpu.calls(), 0);
}

TEST(GeluChunks, CoverAllRows) {
  for (const int64_t rows : {1L, 127L, 128L, 129L, 32768L, 32769L, 1000000L}) {
    EXPECT_GE(gelu_chunk(rows) * gelu_chunks(rows), rows);
    EXPECT_LT(gelu_chunk(rows) * (gelu_chunks(rows) - 1), rows);
    EXPECT_LE(gelu_chunks(rows), kGeluChunks);
  }
}

}  // namespace
}  // namespace welkin::ops
