// SPDX-License-Identifier: Apache-2.0
// Every gradient of ours that is written below autograd refuses to leave a graph; the others' second derivatives are aten's.
#include "ops/base/once_differentiable.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "device_on_cpu.h"
#include "gradient_check.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_tiles_aten.h"
#include "ops/base/instruction_set.h"
#include "ops/base/recompute.h"
#include "ops/convolution/bias_leaky_relu.h"
#include "ops/convolution/convolution.h"
#include "ops/gemm/gelu_linear.h"
#include "ops/gemm/gemm_provider.h"
#include "ops/gemm/mixed_matmul.h"
#include "ops/loss/error_sums.h"
#include "ops/norm/layer_norm.h"
#include "ops/norm/residual_norm.h"

namespace welkin::ops {
namespace {

constexpr double kEpsilon = 1e-6;
constexpr int64_t kWidth = 256;  // tiles take squares of it

using Tensors = std::vector<at::Tensor>;

at::Tensor leaf(at::IntArrayRef shape, uint64_t seed) { return tests::test_values(shape, seed).to(at::kFloat).requires_grad_(); }

// The gradient by all leaves of the squared length of the gradient by the first one, as a penalty of gradients is.
Tensors second_gradients(const tests::TensorFunction& function, const Tensors& leaves) {
  const Tensors first = torch::autograd::grad({function(leaves).pow(3).sum()}, {leaves[0]}, {}, /*retain_graph=*/true,
                                              /*create_graph=*/true);
  return torch::autograd::grad({first[0].pow(2).sum()}, leaves);
}

void expect_once(const char* who, const tests::TensorFunction& function, const Tensors& leaves) {
  SCOPED_TRACE(who);
  // With another way of x to the result: else what is missing is no error of autograd's, but no gradient at all.
  const auto with_x = [&](const Tensors& in) { return function(in).pow(2).sum() + in[0].pow(2).sum(); };
  EXPECT_TRUE(torch::autograd::grad({with_x(leaves)}, {leaves[0]})[0].defined());
  EXPECT_THROW(second_gradients(with_x, leaves), ConfigError);
}

at::Tensor of_norm(const Tensors& in) { return layer_norm(in[0], in[1], in[2], kEpsilon); }

TEST(DifferentiableOnce, SaysWhatToDo) {
  const Tensors in{leaf({1, 2, 5, 8}, 1)};
  try {
    second_gradients([](const Tensors& x) { return attention(x[0], x[0], x[0]); }, in);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "[ops] the gradient can be taken once only: operator=attention, create_graph=true. Leave out "
                 "create_graph, or use the operators of aten for what is to be differentiated twice.");
  }
}

TEST(DifferentiableOnce, OnACpu) {
  const Tensors heads{leaf({2, 2, 5, 8}, 1), leaf({2, 2, 5, 8}, 2)};
  expect_once(
      "attention", [](const Tensors& in) { return attention(in[0], in[1], in[1]); }, heads);
  const MaskKey key{11, at::scalar_tensor(int64_t{2}, at::kLong), at::tensor({int64_t{7}, int64_t{8}}, at::kLong)};
  expect_once(
      "dropout", [&](const Tensors& in) { return attention_with_dropout(in[0], in[1], in[1], 0.4, key); }, heads);
  expect_once(
      "tiles of aten", [&](const Tensors& in) { return attention_in_tiles(in[0], in[1], in[1], 0.4, key, {}); }, heads);
  const Tensors boxes{leaf({1, 16, 4, 4, 4}, 1), leaf({16, 16, 3, 3, 3}, 2), leaf({16}, 3)};
  const ConvolutionParams same{{1, 1, 1}, {1, 1, 1}};
  expect_once(
      "convolution", [&](const Tensors& in) { return convolution3d(in[0], in[1], in[2], same); }, boxes);
  expect_once(
      "its transpose", [&](const Tensors& in) { return transposed_convolution3d(in[0], in[1], in[2], same); }, boxes);
  const Tensors layer{leaf({4, kWidth}, 1), leaf({kWidth}, 2), leaf({8, kWidth}, 3)};
  expect_once(
      "GELU with a bias", [](const Tensors& in) { return bias_gelu_linear(in[0], in[1], in[2], {}); }, layer);
  const Tensors normed{leaf({4, kWidth}, 1), leaf({kWidth}, 2), leaf({kWidth}, 3), leaf({8, kWidth}, 4)};
  expect_once(
      "linear of a norm", [](const Tensors& in) { return ops::linear(of_norm(in), in[3]); }, normed);
  const auto again = [](const Tensors& in) {
    return recomputed([weight = in[1]](const Tensors& x) { return Tensors{at::linear(x[0], weight)}; }, {in[0]}, {in[1]})[0];
  };
  expect_once("run again", again, {leaf({4, kWidth}, 1), leaf({8, kWidth}, 2)});
}

TEST(DifferentiableOnce, ByTiles) {
  if (instruction_set() != InstructionSet::Amx) GTEST_SKIP() << "this CPU has no tiles";
  set_float32_matmul({}, Float32Precision::High);
  const Tensors in{leaf({kWidth, kWidth}, 1), leaf({kWidth, kWidth}, 2)};
  expect_once(
      "linear", [](const Tensors& x) { return ops::linear(x[0], x[1]); }, in);
  expect_once(
      "linear of GELU", [](const Tensors& x) { return gelu_linear(x[0], x[1], {}); }, in);
  set_float32_matmul({}, Float32Precision::Highest);
}

TEST(DifferentiableOnce, OnAGpu) {
  const tests::BiasLeakyReluOnCpu leaky_relu;
  const Tensors box{leaf({2, 8, 3, 3, 5}, 1), leaf({8}, 2)};
  const auto activated = [](const Tensors& in) {
    return bias_leaky_relu(in[0].mul(1).contiguous(at::MemoryFormat::ChannelsLast3d), in[1], 0.3);
  };
  expect_once("bias and leaky ReLU", activated, box);
  const tests::ResidualNormOnCpu norm;
  const Tensors rows{leaf({4, kWidth}, 1), leaf({4, kWidth}, 2), leaf({kWidth}, 3), leaf({kWidth}, 4)};
  expect_once(
      "norm", [](const Tensors& in) { return norm_for_matmul(in[0], in[2], in[3], kEpsilon); }, rows);
  const auto residual = [](const Tensors& in) { return residual_norm(in[0], in[1], in[2], in[3], kEpsilon).normed; };
  expect_once("residual norm", residual, rows);
  const tests::ErrorSumsOnCpu sums;
  const at::Tensor target = tests::test_values({2, 3, 4, 4, 4}, 5).to(at::kFloat);
  expect_once("error sums", [&](const Tensors& in) { return error_sums(in[0], target, ErrorKind::Square); },
              {leaf({2, 3, 4, 4, 4}, 6)});
}

TEST(DifferentiableTwice, WhatAutogradSees) {
  const auto expect_same = [](const char* who, const tests::TensorFunction& own, const tests::TensorFunction& reference,
                              const Tensors& leaves) {
    const Tensors got = second_gradients(own, leaves), wanted = second_gradients(reference, leaves);
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(tests::close(got[i], wanted[i], at::kFloat, kWidth)) << who << i;
  };
  const Tensors in{leaf({kWidth, 16}, 1), leaf({24, 16}, 2), leaf({24}, 3)};
  expect_same(
      "linear", [](const Tensors& x) { return ops::linear(x[0], x[1], x[2]); },
      [](const Tensors& x) { return at::linear(x[0], x[1], x[2]); }, in);
  expect_same(
      "linear of GELU", [](const Tensors& x) { return gelu_linear(x[0], x[1], x[2]); },
      [](const Tensors& x) { return gelu_linear_reference(x[0], x[1], x[2]); }, in);
  const Tensors normed{leaf({6, 16}, 1), leaf({16}, 2), leaf({16}, 3)};
  expect_same(
      "norm", of_norm, [](const Tensors& x) { return at::layer_norm(x[0], {16}, x[1], x[2], kEpsilon); }, normed);
}

}  // namespace
}  // namespace welkin::ops
