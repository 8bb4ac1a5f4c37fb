// SPDX-License-Identifier: Apache-2.0
#include "ops/low_product.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/slice.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "gradient_check.h"
#include "ops/autocast.h"
#include "ops/instruction_support.h"

namespace welkin::ops {
namespace {

std::vector<at::Tensor> linear_operands(at::IntArrayRef x, int64_t out, at::ScalarType type) {
  return {tests::test_values(x, 1).to(type), tests::test_values({out, x.back()}, 2).to(type),
          tests::test_values({out}, 3).to(type)};
}

at::Tensor own_linear(const std::vector<at::Tensor>& in) { return linear(in[0], in[1], in.size() > 2 ? in[2] : at::Tensor()); }

// Exact products of rounded operands, and one rounding.
at::Tensor in_double(const std::vector<at::Tensor>& in) {
  const at::Tensor bias = in.size() > 2 ? in[2].to(at::kDouble) : at::Tensor();
  return at::linear(in[0].to(at::kDouble), in[1].to(at::kDouble), bias).to(in[0].scalar_type());
}

constexpr std::array kForms{LowForm::Direct, LowForm::Mixed, LowForm::Widened};

TEST(LowProduct, LinearIsTheSameFunctionInAllForms) {
  for (const LowForm form : kForms) {
    const LowFormGuard guard(form);
    for (const at::ScalarType type : {at::kBFloat16, at::kHalf, at::kFloat}) {
      for (const auto& [rows, in, out] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {7, 33, 5}, {40, 48, 130}}) {
        auto inputs = linear_operands({2, rows, in}, out, type);
        const int64_t length = std::max({2 * rows, in, out});
        EXPECT_TRUE(tests::same_function(own_linear, in_double, inputs, length)) << type << " " << rows << " " << static_cast<int>(form);
        inputs.pop_back();
        inputs[0] = inputs[0].transpose(0, 1);  // other strides
        EXPECT_TRUE(tests::same_function(own_linear, in_double, inputs, length)) << type << " " << rows << " " << static_cast<int>(form);
      }
    }
  }
}

TEST(LowProduct, UnderAutocastOperandsAreRoundedAndGradientsComeBackWide) {
  const LowFormGuard mixed(LowForm::Mixed);
  auto leaves = linear_operands({9, 20}, 6, at::kFloat);
  for (at::Tensor& leaf : leaves) leaf.requires_grad_();
  at::Tensor got;
  {
    const AutocastGuard autocast(at::kCPU, at::kBFloat16);
    got = own_linear(leaves);
  }
  std::vector<at::Tensor> rounded;
  for (const at::Tensor& leaf : leaves) rounded.push_back(leaf.detach().to(at::kBFloat16));
  EXPECT_EQ(got.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(tests::close(got, in_double(rounded), at::kBFloat16, 1));
  got.sum().backward();
  for (const at::Tensor& leaf : leaves) EXPECT_EQ(leaf.grad().scalar_type(), at::kFloat);
}

// Copies into another type while `work` runs.
template <typename Work>
int64_t casts_in(const Work& work) {
  static std::atomic<int64_t> casts;
  casts = 0;
  const auto count = [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
    if (std::string_view(function.name()) == "aten::_to_copy") ++casts;
    return nullptr;
  };
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(count));
  work();
  at::removeCallback(handle);
  return casts;
}

TEST(LowProduct, WhereNothingIsWidenedOperandsAreCastOnce) {
  const LowFormGuard direct(LowForm::Direct);
  const auto operands = linear_operands({9, 20}, 6, at::kFloat);
  const AutocastGuard autocast(at::kCPU, at::kBFloat16);
  const int64_t wanted = casts_in([&] { at::linear(operands[0], operands[1], operands[2]); });
  EXPECT_EQ(wanted, 3);
  EXPECT_EQ(casts_in([&] { linear(operands[0], operands[1], operands[2]); }), wanted);
}

// Matrices with dense rows, dense columns, neither, and of one row or column, between others in memory.
TEST(LowProduct, TakesMatricesOfAnyStrides) {
  const at::Tensor a = tests::test_values({12, 20}, 1), b = tests::test_values({20, 18}, 2);
  const std::vector<std::pair<at::Tensor, at::Tensor>> operands{
      {a, b},
      {a.t().contiguous().t(), b.t().contiguous().t()},
      {a.narrow(1, 3, 9), b.narrow(0, 2, 9).narrow(1, 1, 5)},
      {a.t().narrow(1, 2, 7), b.t().narrow(1, 4, 7).t()},
      {at::slice(a, 1, 0, 20, 2), at::slice(b, 1, 0, 18, 3).narrow(0, 0, 10)},
      {a.narrow(0, 5, 1), b.narrow(1, 7, 1)},
      {a.narrow(1, 5, 1), b.narrow(0, 7, 1)},
      {a.select(0, 3).unsqueeze(0).expand({4, 20}), b},
  };
  for (const LowForm form : kForms) {
    const LowFormGuard guard(form);
    const AutocastGuard autocast(at::kCPU, at::kHalf);  // left aside
    for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
      for (size_t i = 0; i < operands.size(); ++i) {
        // Casts keep strides, but for those of an expanded row.
        const at::Tensor left = operands[i].first.to(type), right = operands[i].second.to(type);
        const at::Tensor got = product(left, right);
        EXPECT_EQ(got.scalar_type(), type);
        EXPECT_TRUE(tests::close(got, at::mm(left.to(at::kDouble), right.to(at::kDouble)), type, 1))
            << type << " " << i << " " << static_cast<int>(form);
      }
    }
  }
}

TEST(LowProduct, OfNothingIsNothing) {
  for (const LowForm form : kForms) {
    const LowFormGuard guard(form);
    const auto zeros = [](int64_t rows, int64_t columns) { return at::zeros({rows, columns}, at::kBFloat16); };
    EXPECT_EQ(product(zeros(0, 3), zeros(3, 2)).numel(), 0);
    EXPECT_TRUE(at::equal(product(zeros(2, 0), zeros(0, 3)), zeros(2, 3)));
  }
}

TEST(LowProduct, IsWidenedWhereTheProcessorHasNoInstructions) {
  EXPECT_EQ(widens_products(at::kCPU, at::kBFloat16), !cpu_multiplies_bf16());
  EXPECT_EQ(widens_products(at::kCPU, at::kHalf), !cpu_multiplies_fp16());
  EXPECT_FALSE(widens_products(at::kCPU, at::kFloat));
  EXPECT_FALSE(widens_products(at::kCPU, at::kDouble));
  const LowFormGuard wide(LowForm::Widened);
  EXPECT_FALSE(widens_products(at::kCUDA, at::kBFloat16));
  EXPECT_FALSE(widens_products(at::kCPU, at::kFloat));
}

}  // namespace
}  // namespace welkin::ops
