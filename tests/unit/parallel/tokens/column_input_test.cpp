// SPDX-License-Identifier: Apache-2.0
#include "parallel/tokens/column_input.h"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <optional>

#include "core/error.h"
#include "parallel/comm/differentiable.h"
#include "parallel/comm/fake_group.h"
#include "parallel/tokens/ring_attention.h"

namespace welkin::parallel {
namespace {

// Gradients that are sent are no part of a graph: one that asks for a graph of them hears so.
TEST(ColumnInput, AndCollectivesAreDifferentiableOnce) {
  const Group group = fake_group("tp", {{0, 1}, 0});
  const at::Tensor x = at::ones({2, 3, 4}).requires_grad_(), weight = at::ones({5, 4}).requires_grad_();
  const auto with_graph = [&](const at::Tensor& y) {
    torch::autograd::grad({y.pow(2).sum() + x.pow(2).sum()}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true);
  };
  ColumnInput input(group, std::nullopt);
  const at::Tensor entered = input.enter(x);
  EXPECT_THROW(with_graph(entered), ConfigError);
  const auto matmul = input.matmul(entered, weight);
  ASSERT_TRUE(matmul);
  EXPECT_THROW(with_graph(*matmul), ConfigError);
  EXPECT_THROW(with_graph(copy_to_group(group, x)), ConfigError);
  const at::Tensor heads = x.unsqueeze(0);
  EXPECT_THROW(with_graph(ring_attention(group, {3, 3}, heads, heads, heads, {})), ConfigError);
}

}  // namespace
}  // namespace welkin::parallel
