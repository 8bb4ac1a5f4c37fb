// SPDX-License-Identifier: Apache-2.0
#include "ops/attention.h"

#include <ATen/TensorOperators.h>
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
  at::Tensor q = tests::test_values({2, 3, 5, 4}, 1);
  at::Tensor k = tests::test_values({2, 3, 5, 4}, 2);
  at::Tensor v = tests::test_values({2, 3, 5, 4}, 3);
};

MaskKey attention_key() {
  return {11, at::scalar_tensor(int64_t{2}, at::kLong), at::tensor({int64_t{7}, int64_t{8}}, at::kLong)};
}

TEST(Attention, EqualsItsDefinition) {
  const Heads h;
  const at::Tensor weights = at::softmax(at::matmul(h.q, h.k.transpose(-2, -1)).div(std::sqrt(4.0)), -1);
  EXPECT_TRUE(tests::close(attention(h.q, h.k, h.v), at::matmul(weights, h.v), at::kDouble, h.k.size(2)));
}

TEST(Attention, GradientsOfBothForms) {
  const Heads h;
  const auto plain = [](const std::vector<at::Tensor>& in) { return attention(in[0], in[1], in[2]); };
  EXPECT_TRUE(tests::gradients_are_right(plain, {h.q.clone(), h.k.clone(), h.v.clone()}));
  const auto dropped = [](const std::vector<at::Tensor>& in) {
    return attention_with_dropout(in[0], in[1], in[2], 0.4, attention_key());
  };
  EXPECT_TRUE(tests::gradients_are_right(dropped, {h.q.clone(), h.k.clone(), h.v.clone()}));
}

TEST(Attention, DropoutIsOnTheWeightsAndKeyedByHeadQueryAndKey) {
  const Heads h;
  const at::Tensor weights = at::softmax(at::matmul(h.q, h.k.transpose(-2, -1)).div(std::sqrt(4.0)), -1);
  const at::Tensor keep = philox_keep_reference(weights.sizes(), 0.4, attention_key());
  const at::Tensor wanted = at::matmul(weights.mul(keep).div(0.6), h.v);
  // the rate is a multiple of 2^-32 in the mask's rule, which 0.4 is not
  EXPECT_LE(tests::relative_l2(attention_with_dropout(h.q, h.k, h.v, 0.4, attention_key()), wanted), 0x1p-32);
}

TEST(Attention, APartOfTheHeadsHasTheMaskOfTheWhole) {
  const Heads h;
  const at::Tensor whole = attention_with_dropout(h.q, h.k, h.v, 0.4, attention_key());
  const auto last_two = [](const at::Tensor& x) { return x.slice(1, 1, 3); };
  const MaskWindow window{{3, 5, 5}, {1, 0, 0}};
  const at::Tensor part = attention_with_dropout(last_two(h.q), last_two(h.k), last_two(h.v), 0.4, attention_key(), window);
  EXPECT_TRUE(tests::close(part, last_two(whole), at::kDouble, h.k.size(2)));
}

// Aten picks another kernel by dtype, length and strides; the definition in the same dtype is the reference.
TEST(Attention, FusedFormEqualsTheReferenceWithGradients) {
  const auto fused = [](const std::vector<at::Tensor>& in) { return attention(in[0], in[1], in[2]); };
  const auto reference = [](const std::vector<at::Tensor>& in) {
    const double scale = 1 / std::sqrt(static_cast<double>(in[0].size(-1)));
    return at::matmul(at::softmax(at::matmul(in[0].mul(scale), in[1].transpose(-2, -1)), -1), in[2]);
  };
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kBFloat16}) {
    for (const int64_t tokens : {2, 3, 17, 64, 129}) {  // with one, queries have no gradient
      for (const int64_t width : {1, 5, 8, 48}) {
        const auto heads = [&](uint64_t seed) { return tests::test_values({2, tokens, 3, width}, seed).to(dtype); };
        const std::vector<at::Tensor> strided{heads(1).transpose(1, 2), heads(2).transpose(1, 2), heads(3).transpose(1, 2)};
        EXPECT_TRUE(tests::same_function(fused, reference, strided, tokens + width)) << dtype << " " << tokens << " " << width;
      }
    }
  }
}

}  // namespace
}  // namespace welkin::ops
