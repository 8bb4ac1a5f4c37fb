// SPDX-License-Identifier: Apache-2.0
#include "ops/base/recompute.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <optional>
#include <string>

#include "core/error.h"
#include "gradient_check.h"
#include "ops/base/autocast.h"
#include "ops/gemm/mixed_matmul.h"
#include "ops/norm/layer_norm.h"

namespace welkin::ops {
namespace {

constexpr int64_t kLayerWidth = 12, kHidden = 20;
constexpr double kNormEpsilon = 1e-6;

using Tensors = std::vector<at::Tensor>;

// Norm, matmul, GELU, matmul: two results, of which the second asks for no gradient.
struct Layers {
  Tensors weights{tests::test_values({kLayerWidth}, 2), tests::test_values({kLayerWidth}, 3),
                  tests::test_values({kHidden, kLayerWidth}, 4), tests::test_values({kHidden}, 5),
                  tests::test_values({kLayerWidth, kHidden}, 6)};
  std::shared_ptr<int64_t> runs = std::make_shared<int64_t>(0);

  explicit Layers(at::ScalarType type = at::kDouble) {
    for (at::Tensor& weight : weights) weight = weight.to(type).requires_grad_();
  }
  TensorsFunction part() const {
    return [weights = weights, runs = runs](const Tensors& in) {
      ++*runs;
      const at::Tensor normed = layer_norm(in.at(0), weights[0], weights[1], kNormEpsilon);
      const at::Tensor hidden = at::gelu(ops::linear(normed, weights[2], weights[3]));
      return Tensors{in.at(0) + ops::linear(hidden, weights[4]), in.at(1) * 2};
    };
  }
};

struct Results {
  Tensors out;
  Tensors gradients;  // of the input, then of the weights
};

Results results_of(bool is_recomputed, at::ScalarType type, std::optional<at::ScalarType> low = {}) {
  const Layers layers(type);
  const at::Tensor x = tests::test_values({3, 7, kLayerWidth}, 1).to(type).requires_grad_();
  const at::Tensor fixed = tests::test_values({4}, 8).to(type);
  Results results;
  {
    const AutocastGuard autocast(at::kCPU, low);
    const at::Tensor entered = x * 1.5;
    results.out = is_recomputed ? recomputed(layers.part(), {entered, fixed}, layers.weights) : layers.part()({entered, fixed});
  }
  EXPECT_EQ(*layers.runs, 1);
  results.out[0].backward(tests::test_values(results.out[0].sizes(), 9).to(results.out[0].scalar_type()));
  EXPECT_EQ(*layers.runs, is_recomputed ? 2 : 1);
  results.gradients = {x.grad()};
  for (const at::Tensor& weight : layers.weights) results.gradients.push_back(weight.grad());
  return results;
}

void expect_same_bits(const Results& got, const Results& wanted) {
  for (size_t i = 0; i < wanted.out.size(); ++i) EXPECT_TRUE(at::equal(got.out[i], wanted.out[i])) << i;
  for (size_t i = 0; i < wanted.gradients.size(); ++i) EXPECT_TRUE(at::equal(got.gradients[i], wanted.gradients[i])) << i;
}

TEST(Recomputed, GivesTheBitsOfThePartAsItIs) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) expect_same_bits(results_of(true, type), results_of(false, type));
}

TEST(Recomputed, RunsAgainUnderTheAutocastOfTheForwardPass) {
  for (const at::ScalarType low : {at::kBFloat16, at::kHalf}) {
    const Results got = results_of(true, at::kFloat, low);
    expect_same_bits(got, results_of(false, at::kFloat, low));
    EXPECT_FALSE(at::equal(got.gradients[0], results_of(true, at::kFloat).gradients[0])) << "low precision shows";
  }
}

// The input is a leaf of the second run, of which autocast would keep one cast for all that take it, and sum their gradients in
// the low type.
TEST(Recomputed, GradientsOfAnInputWithManyTakersAreSummedInItsType) {
  const at::Tensor weight = tests::test_values({kLayerWidth, kLayerWidth}, 4).requires_grad_();
  const auto part = [weight](const Tensors& in) {
    return Tensors{ops::linear(in[0], weight) + ops::linear(in[0] * 1.0, weight) + ops::linear(in[0], weight)};
  };
  Tensors gradients;
  for (const bool is_recomputed : {true, false}) {
    const at::Tensor x = tests::test_values({5, kLayerWidth}, 1).requires_grad_();
    at::Tensor out;
    {
      const AutocastGuard autocast(at::kCPU, at::kBFloat16);
      const at::Tensor entered = x * 1.5;
      out = is_recomputed ? recomputed(part, {entered}, {weight})[0] : part({entered})[0];
    }
    out.sum().backward();
    gradients.push_back(x.grad());
  }
  EXPECT_TRUE(at::equal(gradients[0], gradients[1]));
}

// A weight that is cast within the part, where no graph is, and behind it.
TEST(Recomputed, LeavesNoCastOfAWeightBehind) {
  const at::Tensor weight = tests::test_values({kLayerWidth, kLayerWidth}, 4).requires_grad_();
  const at::Tensor x = tests::test_values({5, kLayerWidth}, 1).requires_grad_();
  const auto part = [weight](const Tensors& in) { return Tensors{at::linear(in[0], weight)}; };
  at::Tensor wanted;
  for (const bool is_recomputed : {false, true}) {
    weight.mutable_grad().reset();
    at::Tensor out;
    {
      const AutocastGuard autocast(at::kCPU, at::kBFloat16);
      out = at::linear(is_recomputed ? recomputed(part, {x}, {weight})[0] : part({x})[0], weight);
    }
    out.sum().backward();
    if (!is_recomputed) wanted = weight.grad().clone();
  }
  EXPECT_TRUE(tests::close(weight.grad(), wanted, at::kBFloat16, 2 * kLayerWidth));
}

TEST(Recomputed, GivesGradientsToThoseThatAskOnly) {
  Layers layers;
  layers.weights[2].requires_grad_(false);
  const at::Tensor unused = at::full({2}, 1.0).requires_grad_();
  Tensors weights = layers.weights;
  weights.push_back(unused);
  const at::Tensor x = tests::test_values({3, kLayerWidth}, 1), fixed = tests::test_values({4}, 8);
  const Tensors out = recomputed(layers.part(), {x, fixed}, weights);
  out[0].sum().backward();
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(layers.weights[2].grad().defined());
  EXPECT_FALSE(unused.grad().defined());
  EXPECT_TRUE(layers.weights[4].grad().defined());
}

TEST(Recomputed, WhatNobodyUsedHasNoGradient) {
  const at::Tensor x = tests::test_values({3, kLayerWidth}, 1).requires_grad_(), other = tests::test_values({4}, 8);
  const at::Tensor scale = at::full({}, 1.25).requires_grad_();
  const auto part = [&](const Tensors& in) { return Tensors{in[0] * 2, in[0] * scale, in[1] * 3}; };
  const Tensors out = recomputed(part, {x, other}, {scale});
  out[0].sum().backward({}, /*retain_graph=*/true);
  EXPECT_TRUE(x.grad().defined());
  EXPECT_FALSE(scale.grad().defined());
  x.mutable_grad().reset();
  out[2].sum().backward();  // of which the second run says that nothing needs a gradient
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(scale.grad().defined());
}

// Two parts one behind the other, the second within the first as well: nested runs.
// A bias that is captured and named nowhere was trained no more, without a word.
TEST(Recomputed, AParameterThatIsNeitherInputNorWeightIsRefused) {
  const at::Tensor x = tests::test_values({3, kLayerWidth}, 1).requires_grad_();
  const at::Tensor bias = tests::test_values({kLayerWidth}, 2).requires_grad_();
  const TensorsFunction part = [bias](const Tensors& in) { return Tensors{(in.at(0) + bias).sin()}; };
  try {
    recomputed(part, {x}, {})[0].sum().backward();
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("would not train it: shape=(12)"), std::string::npos) << error.what();
  }
  recomputed(part, {x}, {bias})[0].sum().backward();
  EXPECT_TRUE(bias.grad().defined());
  bias.mutable_grad() = at::Tensor();
  const at::Tensor frozen = bias.detach();
  recomputed([frozen](const Tensors& in) { return Tensors{(in.at(0) + frozen).sin()}; }, {x}, {})[0].sum().backward();
}

TEST(Recomputed, PartsMayHoldParts) {
  const Layers inner;
  const at::Tensor scale = at::full({}, 1.25).requires_grad_();
  const auto run = [&](bool is_recomputed) {
    for (const at::Tensor& weight : inner.weights) weight.mutable_grad().reset();
    scale.mutable_grad().reset();
    const at::Tensor x = tests::test_values({3, kLayerWidth}, 1).requires_grad_(), fixed = tests::test_values({4}, 8);
    const TensorsFunction body = inner.part();
    const TensorsFunction outer = [=, weights = inner.weights](const Tensors& in) {
      const Tensors mid = is_recomputed ? recomputed(body, {in[0] * scale, fixed}, weights) : body({in[0] * scale, fixed});
      return Tensors{mid[0] * 3};
    };
    Tensors all = inner.weights;
    all.push_back(scale);
    const Tensors first = is_recomputed ? recomputed(outer, {x}, all) : outer({x});
    first[0].square().sum().backward();
    Tensors gradients{x.grad()};
    for (const at::Tensor& weight : all) gradients.push_back(weight.grad().clone());
    return gradients;
  };
  const Tensors got = run(true), wanted = run(false);
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(at::equal(got[i], wanted[i])) << i;
}

// Whoever waits where a weight's gradient arrives (DDP's Reducer) hears of it once a pass, and gradients add up over passes.
TEST(Recomputed, AWeightGetsItsGradientOnceAPass) {
  const Layers layers;
  const at::Tensor& weight = layers.weights[2];
  int64_t calls = 0;
  const auto node = torch::autograd::impl::grad_accumulator(weight);
  node->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
      [&calls](const Tensors& /*results*/, const Tensors& /*gradients*/) {
        ++calls;
        return Tensors();
      }));
  at::Tensor first;
  for (int64_t pass = 1; pass <= 2; ++pass) {
    const at::Tensor x = tests::test_values({3, kLayerWidth}, 1).requires_grad_(), fixed = tests::test_values({4}, 8);
    recomputed(layers.part(), {x, fixed}, layers.weights)[0].sum().backward();
    EXPECT_EQ(calls, pass);
    if (pass == 1) first = weight.grad().clone();
  }
  EXPECT_TRUE(at::equal(weight.grad(), 2 * first));
}

// What the first run captured goes with the graph.
TEST(Recomputed, KeepsThePartUntilTheGraphIsGone) {
  const auto held = std::make_shared<int>(0);
  {
    const at::Tensor x = tests::test_values({3}, 1).requires_grad_();
    const at::Tensor out = recomputed([held](const Tensors& in) { return Tensors{in[0] * 2}; }, {x}, {})[0];
    EXPECT_EQ(held.use_count(), 2);
    out.sum().backward();
  }
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace welkin::ops
