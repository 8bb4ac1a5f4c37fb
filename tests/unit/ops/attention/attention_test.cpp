// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>

#include "core/process/host.h"
#include "gradient_check.h"
#include "number_close.h"
#include "ops/base/autocast.h"

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
  EXPECT_TRUE(tests::gradcheck(plain, {h.q.clone(), h.k.clone(), h.v.clone()}));
  const auto dropped = [](const std::vector<at::Tensor>& in) {
    return attention_with_dropout(in[0], in[1], in[2], 0.4, attention_key());
  };
  EXPECT_TRUE(tests::gradcheck(dropped, {h.q.clone(), h.k.clone(), h.v.clone()}));
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
        EXPECT_TRUE(tests::same_results(fused, reference, strided, tokens + width)) << dtype << " " << tokens << " " << width;
      }
    }
  }
}

at::Tensor with_all_weights(const std::vector<at::Tensor>& in, const MaskWindow& window = {}) {
  const at::Tensor weights = at::softmax(at::matmul(in[0], in[1].transpose(-2, -1)).div(std::sqrt(in[0].size(-1))), -1);
  return at::matmul(philox_dropout(weights, 0.3, attention_key(), window), in[2]);
}

// More queries than a tile and no multiple of it, other keys than queries, heads as views of tokens: values and gradients.
TEST(Attention, DropoutInTilesEqualsTheFormThatHoldsAllWeights) {
  const auto heads = [](int64_t tokens, uint64_t seed) {
    return tests::test_values({2, tokens, 3, 4}, seed).transpose(1, 2).detach().requires_grad_();
  };
  const MaskWindow window{{5, 400, 70}, {1, 50, 7}};
  for (const MaskWindow& place : {MaskWindow{}, window}) {
    const std::vector<at::Tensor> a{heads(300, 1), heads(60, 2), heads(60, 3)}, b{heads(300, 1), heads(60, 2), heads(60, 3)};
    const at::Tensor tiled = attention_with_dropout(a[0], a[1], a[2], 0.3, attention_key(), place);
    const at::Tensor whole = with_all_weights(b, place);
    EXPECT_TRUE(tests::close(tiled, whole, at::kDouble, 60));
    const at::Tensor direction = tests::test_values(whole.sizes(), 9);
    tiled.mul(direction).sum().backward();
    whole.mul(direction).sum().backward();
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(tests::close(a[i].grad(), b[i].grad(), at::kDouble, 300)) << i;
  }
}

TEST(Attention, DropoutUnderBf16AutocastTakesBf16MatmulsAndKeepsTheMask) {
  const auto heads = [](uint64_t seed) { return tests::test_values({2, 3, 200, 8}, seed).to(at::kFloat).requires_grad_(); };
  const std::vector<at::Tensor> low{heads(1), heads(2), heads(3)}, full{heads(1), heads(2), heads(3)};
  at::Tensor out;
  {
    const AutocastGuard autocast(c10::kCPU, at::kBFloat16);
    out = attention_with_dropout(low[0], low[1], low[2], 0.3, attention_key());
  }
  EXPECT_EQ(out.scalar_type(), at::kBFloat16);
  out.to(at::kFloat).sum().backward();
  const at::Tensor reference = with_all_weights(full);
  reference.sum().backward();
  const double bound = 8 * std::ldexp(1.0, -8);  // a few roundings of bf16
  EXPECT_LE(out.sub(reference).abs().max().item<double>(), bound * reference.abs().max().item<double>());
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(low[i].grad().scalar_type(), at::kFloat);
    EXPECT_LE(low[i].grad().sub(full[i].grad()).norm().item<double>(), bound * full[i].grad().norm().item<double>()) << i;
  }
}

TEST(Attention, DropoutDoesNotHoldTheSquareOfTheTokens) {
  const auto heads = [](uint64_t seed) { return tests::test_values({1, 2, 2500, 4}, seed).to(at::kFloat).requires_grad_(); };
  const at::Tensor q = heads(1), k = heads(2), v = heads(3);
  const MaskKey key{11, at::scalar_tensor(int64_t{2}, at::kLong), at::tensor({int64_t{7}}, at::kLong)};
  // What is freed goes back at once: resident is what is held, not what malloc keeps.
  if (mallopt(M_MMAP_THRESHOLD, 1 << 20) != 1) GTEST_SKIP() << "this allocator keeps back what is freed (a sanitizer's)";
  const uint64_t before = peak_resident_bytes();
  attention_with_dropout(q, k, v, 0.3, key).sum().backward();
  const uint64_t all_weights = uint64_t{2} * 2500 * 2500 * sizeof(float);
  EXPECT_LT(peak_resident_bytes(), before + all_weights / 2);
}

}  // namespace
}  // namespace welkin::ops
