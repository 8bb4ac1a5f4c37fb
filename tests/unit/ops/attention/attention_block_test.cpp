// SPDX-License-Identifier: Apache-2.0
// Blocks of attention and their gradients against the plain operators, for operands with any strides.
#include "ops/attention/attention_block.h"

#include <gtest/gtest.h>

#include <vector>

#include "gradient_check.h"

namespace welkin::ops {
namespace {

using MakeHeads = at::Tensor (*)(at::IntArrayRef sizes, uint64_t seed, at::ScalarType type);

at::Tensor contiguous_heads(at::IntArrayRef sizes, uint64_t seed, at::ScalarType type) {
  return tests::test_values(sizes, seed).to(type);
}

// As a transposed gradient has them, for example.
at::Tensor heads_by_column(at::IntArrayRef sizes, uint64_t seed, at::ScalarType type) {
  return tests::test_values({sizes[0], sizes[1], sizes[3], sizes[2]}, seed).to(type).transpose(2, 3);
}

// As the gradient of a sum has them.
at::Tensor one_number(at::IntArrayRef sizes, uint64_t seed, at::ScalarType type) {
  return tests::test_values({1, 1, 1, 1}, seed).to(type).expand(sizes);
}

TEST(AttentionBlock, EqualsThePlainOperatorsForAnyStrides) {
  constexpr int64_t kHeads = 3, kQueries = 7, kKeys = 9;
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    for (const int64_t width : {1, 5, 8}) {
      for (const MakeHeads make : {contiguous_heads, heads_by_column}) {
        const at::Tensor q = make({2, kHeads, kQueries, width}, 1, type);
        const at::Tensor k = make({2, kHeads, kKeys, width}, 2, type), v = make({2, kHeads, kKeys, width}, 3, type);
        const AttentionBlock wanted = reference::attention_block(q, k, v), got = attention_block(q, k, v);
        EXPECT_TRUE(tests::close(got.out, wanted.out, type, kKeys + width)) << type << ", width " << width;
        EXPECT_TRUE(tests::close(got.lse, wanted.lse, type, kKeys + width)) << type << ", width " << width;
        for (const MakeHeads make_gradient : {contiguous_heads, heads_by_column, one_number}) {
          const at::Tensor gradient = make_gradient(q.sizes(), 4, type);
          const auto wanted_gradients = reference::attention_block_gradient(gradient, q, k, v, wanted);
          const auto gradients = attention_block_gradient(gradient, q, k, v, wanted);
          EXPECT_TRUE(tests::close(gradients.q, wanted_gradients.q, type, kKeys + width)) << type << ", width " << width;
          EXPECT_TRUE(tests::close(gradients.k, wanted_gradients.k, type, kKeys + width)) << type << ", width " << width;
          EXPECT_TRUE(tests::close(gradients.v, wanted_gradients.v, type, kKeys + width)) << type << ", width " << width;
        }
      }
    }
  }
}

}  // namespace
}  // namespace welkin::ops
