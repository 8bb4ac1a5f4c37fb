// SPDX-License-Identifier: Apache-2.0
// Against aten's sum, bit by bit.
#include "ops/norm/residual_sum.h"

#include <ATen/ops/add.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/pow.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "gradient_check.h"

namespace welkin::ops {
namespace {

struct Sums {
  at::Tensor sum, grad_x, grad_branch;
};

template <typename Add>
Sums sums_of(const Add& add, at::Tensor x, at::Tensor branch) {
  x = x.detach().requires_grad_();
  branch = branch.detach().requires_grad_();
  const at::Tensor sum = add(x, branch);
  sum.square().sum().backward();
  return {.sum = sum.detach(), .grad_x = x.grad(), .grad_branch = branch.grad()};
}

void expect_same(const at::Tensor& x, const at::Tensor& branch) {
  const Sums wanted = sums_of([](const at::Tensor& a, const at::Tensor& b) { return a.add(b); }, x, branch);
  const Sums got = sums_of(residual_sum, x, branch);
  EXPECT_EQ(got.sum.scalar_type(), wanted.sum.scalar_type());
  EXPECT_TRUE(got.sum.equal(wanted.sum));
  EXPECT_TRUE(got.grad_x.equal(wanted.grad_x));
  EXPECT_EQ(got.grad_branch.scalar_type(), branch.scalar_type());
  EXPECT_TRUE(got.grad_branch.equal(wanted.grad_branch));
}

TEST(ResidualSum, EqualsAtensForEveryPairOfTypes) {
  for (const at::ScalarType stream : {at::kFloat, at::kDouble, at::kBFloat16}) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
      expect_same(tests::test_values({2, 5, 33}, 1).to(stream), tests::test_values({2, 5, 33}, 2).to(type));
    }
  }
}

TEST(ResidualSum, TakesAnyStridesAndShapesThatAtenTakes) {
  const at::Tensor x = tests::test_values({2, 5, 33}, 1).to(at::kFloat);
  const at::Tensor branch = tests::test_values({33, 5, 2}, 2).to(at::kBFloat16);
  expect_same(x, branch.permute({2, 1, 0}));
  expect_same(x, branch.permute({2, 1, 0}).slice(0, 0, 1).contiguous());  // broadcast
  expect_same(x.slice(1, 0, 0), branch.permute({2, 1, 0}).slice(1, 0, 0).contiguous());
}

TEST(ResidualSum, ItsGradientHasAGradient) {
  const at::Tensor x = tests::test_values({3, 4}, 1).to(at::kFloat).requires_grad_();
  const at::Tensor branch = tests::test_values({3, 4}, 2).to(at::kBFloat16).requires_grad_();
  const auto first = torch::autograd::grad({residual_sum(x, branch).pow(3).sum()}, {branch}, {}, /*retain_graph=*/true,
                                           /*create_graph=*/true);
  first[0].sum().backward();
  EXPECT_TRUE(branch.grad().defined());
  EXPECT_TRUE(x.grad().defined());
  EXPECT_GT(x.grad().abs().max().item<double>(), 0.0);
}

}  // namespace
}  // namespace welkin::ops
