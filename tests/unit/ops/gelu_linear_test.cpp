// SPDX-License-Identifier: Apache-2.0
#include "ops/gelu_linear.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "gradient_check.h"

namespace welkin::ops {
namespace {

at::Tensor own(const std::vector<at::Tensor>& in) { return gelu_linear(in[0], in[1], in[2]); }
at::Tensor reference(const std::vector<at::Tensor>& in) { return gelu_linear_reference(in[0], in[1], in[2]); }

std::vector<at::Tensor> operands(at::IntArrayRef x, int64_t out) {
  return {tests::test_values(x, 1), tests::test_values({out, x.back()}, 2), tests::test_values({out}, 3)};
}

TEST(GeluLinear, GradientsAreRight) { EXPECT_TRUE(tests::gradients_are_right(own, operands({2, 3, 5}, 4))); }

TEST(GeluLinear, IsTheReferenceInEveryType) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    for (const auto& [rows, in, out] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {7, 33, 5}, {3, 48, 130}}) {
      std::vector<at::Tensor> inputs = operands({2, rows, in}, out);
      inputs[1] = inputs[1].t().contiguous().t();  // other strides
      for (at::Tensor& input : inputs) input = input.to(type);
      EXPECT_TRUE(tests::same_function(own, reference, inputs, std::max({2 * rows, in, out}))) << type << " " << rows;
    }
  }
}

TEST(GeluLinear, WithoutBias) {
  const auto inputs = operands({3, 5}, 4);
  const auto form = [](at::Tensor (*f)(const at::Tensor&, const at::Tensor&, const at::Tensor&)) {
    return [f](const std::vector<at::Tensor>& in) { return f(in[0], in[1], at::Tensor()); };
  };
  EXPECT_TRUE(tests::same_function(form(gelu_linear), form(gelu_linear_reference), {inputs[0], inputs[1]}, 5));
}

}  // namespace
}  // namespace welkin::ops
