// SPDX-License-Identifier: Apache-2.0
#include "ops/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "gradient_check.h"

namespace welkin::ops {
namespace {

struct Heads {
  at::Tensor q = testing::test_values({2, 3, 5, 4}, 1);
  at::Tensor k = testing::test_values({2, 3, 5, 4}, 2);
  at::Tensor v = testing::test_values({2, 3, 5, 4}, 3);
};

MaskKey attention_key() {
  return {11, at::scalar_tensor(int64_t{2}, at::kLong), at::tensor({int64_t{7}, int64_t{8}}, at::kLong)};
}

TEST(Attention, EqualsItsDefinition) {
  const Heads h;
  const at::Tensor weights = at::softmax(at::matmul(h.q, h.k.transpose(-2, -1)).div(std::sqrt(4.0)), -1);
  EXPECT_TRUE(at::allclose(attention(h.q, h.k, h.v), at::matmul(weights, h.v), 1e-12, 1e-12));
}

TEST(Attention, GradientsOfBothForms) {
  const Heads h;
  const auto plain = [](const std::vector<at::Tensor>& in) { return attention(in[0], in[1], in[2]); };
  EXPECT_LE(testing::gradient_error(plain, {h.q.clone(), h.k.clone(), h.v.clone()}), 1.0);
  const auto dropped = [](const std::vector<at::Tensor>& in) {
    return attention_with_dropout(in[0], in[1], in[2], 0.4, attention_key());
  };
  EXPECT_LE(testing::gradient_error(dropped, {h.q.clone(), h.k.clone(), h.v.clone()}), 1.0);
}

TEST(Attention, DropoutIsOnTheWeightsAndKeyedByHeadQueryAndKey) {
  const Heads h;
  const at::Tensor weights = at::softmax(at::matmul(h.q, h.k.transpose(-2, -1)).div(std::sqrt(4.0)), -1);
  const at::Tensor keep = philox_keep_reference(weights.sizes(), 0.4, attention_key());
  const at::Tensor wanted = at::matmul(weights.mul(keep).div(0.6), h.v);
  EXPECT_TRUE(at::allclose(attention_with_dropout(h.q, h.k, h.v, 0.4, attention_key()), wanted, 1e-6, 1e-7));
}

TEST(Attention, APartOfTheHeadsHasTheMaskOfTheWhole) {
  const Heads h;
  const at::Tensor whole = attention_with_dropout(h.q, h.k, h.v, 0.4, attention_key());
  const auto last_two = [](const at::Tensor& x) { return x.slice(1, 1, 3); };
  const MaskWindow window{{3, 5, 5}, {1, 0, 0}};
  const at::Tensor part = attention_with_dropout(last_two(h.q), last_two(h.k), last_two(h.v), 0.4, attention_key(), window);
  EXPECT_TRUE(at::allclose(part, last_two(whole), 1e-12, 1e-12));
}

}  // namespace
}  // namespace welkin::ops
