// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/layer_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "gradient_check.h"
#include "ops/base/autocast.h"
#include "ops/gemm/mixed_matmul.h"

namespace welkin::ops {
namespace {

constexpr double kLayerNormEpsilon = 1e-6;
constexpr int64_t kNormWidth = 20, kOut = 6;

// x, the norm's weight and bias, three matmuls' weights and the first one's bias.
std::vector<at::Tensor> leaves_of(at::ScalarType type) {
  std::vector<at::Tensor> leaves{tests::test_values({3, 7, kNormWidth}, 1), tests::test_values({kNormWidth}, 2),
                                 tests::test_values({kNormWidth}, 3)};
  for (uint64_t i = 0; i < 3; ++i) leaves.push_back(tests::test_values({kOut, kNormWidth}, 4 + i));
  leaves.push_back(tests::test_values({kOut}, 7));
  for (at::Tensor& leaf : leaves) leaf = leaf.to(type).requires_grad_();
  return leaves;
}

at::Tensor biased_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {}) {
  return ops::linear(x, weight, bias);  // at::linear is found by its arguments, too
}

at::Tensor own_matmuls(const std::vector<at::Tensor>& in) {
  const at::Tensor y = layer_norm(in[0], in[1], in[2], kLayerNormEpsilon);
  return at::cat({biased_linear(y, in[3], in[6]), biased_linear(y, in[4]), biased_linear(y, in[5])}, -1);
}

at::Tensor aten_matmuls(const std::vector<at::Tensor>& in) {
  const at::Tensor y = at::layer_norm(in[0], {kNormWidth}, in[1], in[2], kLayerNormEpsilon);
  return at::cat({at::linear(y, in[3], in[6]), at::linear(y, in[4]), at::linear(y, in[5])}, -1);
}

using Matmuls = at::Tensor (*)(const std::vector<at::Tensor>&);

// The output and all gradients that are asked for.
std::vector<at::Tensor> results_of(Matmuls matmuls, const std::vector<at::Tensor>& leaves,
                                   std::optional<at::ScalarType> low = {}) {
  at::Tensor out;
  {
    const AutocastGuard autocast(at::kCPU, low);
    out = matmuls(leaves);
  }
  for (const at::Tensor& leaf : leaves) leaf.mutable_grad().reset();
  out.backward(tests::test_values(out.sizes(), 9).to(out.scalar_type()));
  std::vector<at::Tensor> results{out.detach()};
  for (const at::Tensor& leaf : leaves) {
    if (leaf.requires_grad()) results.push_back(leaf.grad());
  }
  return results;
}

void expect_equal(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& wanted, at::ScalarType type,
                  int64_t length) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].scalar_type(), wanted[i].scalar_type()) << i;
    EXPECT_TRUE(tests::close(got[i], wanted[i], type, length)) << i;
  }
}

TEST(LayerNorm, AndItsMatmulsAreThoseOfAten) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const auto leaves = leaves_of(type);
    expect_equal(results_of(own_matmuls, leaves), results_of(aten_matmuls, leaves), type, kNormWidth);
  }
}

TEST(LayerNorm, UnderAutocastMatmulsAreLowAndGradientsWide) {
  for (const bool widens : {false, true}) {
    const UpcastMatmulGuard rule(widens);
    const auto leaves = leaves_of(at::kFloat);
    const auto got = results_of(own_matmuls, leaves, at::kBFloat16);
    EXPECT_EQ(got[0].scalar_type(), at::kBFloat16);
    expect_equal(got, results_of(aten_matmuls, leaves, at::kBFloat16), at::kBFloat16, kNormWidth);
  }
}

// Who does not ask again leaves nothing behind for the next pass.
TEST(LayerNorm, SomeWeightsMayBeFrozen) {
  for (const size_t frozen : {1, 3, 4, 5}) {
    auto leaves = leaves_of(at::kFloat);
    leaves[frozen].requires_grad_(false);
    expect_equal(results_of(own_matmuls, leaves), results_of(aten_matmuls, leaves), at::kFloat, kNormWidth);
  }
}

TEST(LayerNorm, AGraphMayBeWalkedTwice) {
  const auto leaves = leaves_of(at::kFloat);
  const at::Tensor out = own_matmuls(leaves), loss = out.mul(out).sum();
  loss.backward({}, /*retain_graph=*/true);
  const at::Tensor once = leaves[3].grad().clone();
  loss.backward();
  EXPECT_TRUE(at::equal(leaves[3].grad(), once + once));
}

TEST(LayerNorm, AWeightOfAnotherTypeIsRefusedAsByAten) {
  const auto leaves = leaves_of(at::kFloat);
  const at::Tensor y = layer_norm(leaves[0], leaves[1], leaves[2], kLayerNormEpsilon);
  EXPECT_THROW(biased_linear(y, leaves[3].to(at::kDouble)), c10::Error);
}

// A matmul of something made from the result keeps that; so does one behind a change in place.
TEST(LayerNorm, OnlyTheVeryResultIsMadeAgain) {
  const auto leaves = leaves_of(at::kFloat);
  const at::Tensor y = layer_norm(leaves[0], leaves[1], leaves[2], kLayerNormEpsilon);
  EXPECT_TRUE(norm_result(y));
  EXPECT_FALSE(norm_result(y.view({21, kNormWidth})));
  EXPECT_FALSE(norm_result(leaves[0]));
  const at::Tensor doubled = y.mul(1.0).mul_(2.0);
  EXPECT_FALSE(norm_result(doubled));
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(norm_result(y));
  EXPECT_FALSE(norm_result(layer_norm(leaves[0], leaves[1], leaves[2], kLayerNormEpsilon)));
}

// Made again it would be what it was before.
TEST(LayerNorm, AResultChangedWithoutAGraphIsKept) {
  const auto matmuls_of = [](auto norm, auto matmul) {
    return [norm, matmul](const std::vector<at::Tensor>& in) {
      const at::Tensor y = norm(in[0], in[1], in[2]);
      {
        const at::NoGradGuard no_grad;
        y.mul_(2);
      }
      return matmul(y, in[3]);
    };
  };
  const auto own = [](const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
    return layer_norm(x, w, b, kLayerNormEpsilon);
  };
  const auto atens = [](const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
    return at::layer_norm(x, {kNormWidth}, w, b, kLayerNormEpsilon);
  };
  const auto own_matmul = [](const at::Tensor& y, const at::Tensor& w) { return biased_linear(y, w); };
  const auto atens_matmul = [](const at::Tensor& y, const at::Tensor& w) { return at::linear(y, w); };
  std::vector<at::Tensor> leaves = leaves_of(at::kFloat);
  leaves.resize(4);
  EXPECT_TRUE(tests::same_results(matmuls_of(own, own_matmul), matmuls_of(atens, atens_matmul), leaves, kNormWidth));
}

}  // namespace
}  // namespace welkin::ops
