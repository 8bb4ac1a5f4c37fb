// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/mixed_matmul.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string_view>
#include <tuple>
#include <vector>

#include "gradient_check.h"
#include "ops/base/autocast.h"
#include "ops/base/instruction_support.h"

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

TEST(LowMatmul, LinearIsTheSameFunctionBothWays) {
  for (const bool widens : {false, true}) {
    const UpcastMatmulGuard rule(widens);
    for (const at::ScalarType type : {at::kBFloat16, at::kHalf, at::kFloat}) {
      for (const auto& [rows, in, out] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {7, 33, 5}, {40, 48, 130}}) {
        auto inputs = linear_operands({2, rows, in}, out, type);
        const int64_t length = std::max({2 * rows, in, out});
        EXPECT_TRUE(tests::same_results(own_linear, in_double, inputs, length)) << type << " " << rows << " " << widens;
        inputs.pop_back();
        inputs[0] = inputs[0].transpose(0, 1);  // other strides
        EXPECT_TRUE(tests::same_results(own_linear, in_double, inputs, length)) << type << " " << rows << " " << widens;
      }
    }
  }
}

TEST(LowMatmul, MatmulsOfOneXAreTheSameTogether) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    const UpcastMatmulGuard wide(true);
    std::vector<at::Tensor> inputs = linear_operands({2, 7, 20}, 6, type);
    inputs.push_back(tests::test_values({11, 20}, 4).to(type));
    inputs.push_back(tests::test_values({11}, 5).to(type));
    const auto by = [](auto matmuls) {
      return [matmuls](const std::vector<at::Tensor>& in) { return at::cat(matmuls(in[0], {in[1], in[3]}, {in[2], in[4]}), -1); };
    };
    EXPECT_TRUE(tests::same_results(by(fused_linears), by(linears), inputs, 20)) << type;
    const auto matmuls = fused_linears(inputs[0], {inputs[1], inputs[3]}, {inputs[2], inputs[4]});
    EXPECT_EQ(matmuls[0].sizes(), (std::vector<int64_t>{2, 7, 6}));
    EXPECT_EQ(matmuls[1].sizes(), (std::vector<int64_t>{2, 7, 11}));
  }
}

TEST(LowMatmul, UnderAutocastOperandsAreRoundedAndGradientsComeBackWide) {
  const UpcastMatmulGuard wide(true);
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

TEST(LowMatmul, JoinedWeightsAreRoundedAsEachIsAlone) {
  const UpcastMatmulGuard wide(true);
  const std::vector<at::Tensor> first = linear_operands({9, 20}, 6, at::kFloat),
                                second = linear_operands({9, 20}, 11, at::kFloat);
  const auto gradients = [&](auto matmuls, bool is_second_frozen) {
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& from : {first[0], first[1], first[2], second[1], second[2]}) leaves.push_back(from.clone());
    for (at::Tensor& leaf : leaves) leaf.requires_grad_();
    if (is_second_frozen) leaves[3].requires_grad_(false);
    const AutocastGuard autocast(at::kCPU, at::kBFloat16);
    const std::vector<at::Tensor> out = matmuls(leaves[0], {leaves[1], leaves[3]}, {leaves[2], leaves[4]});
    (out[0].sum() + out[1].square().sum()).backward();
    std::vector<at::Tensor> of_leaves{out[0].detach(), out[1].detach()};
    for (const at::Tensor& leaf : leaves) of_leaves.push_back(leaf.grad());
    return of_leaves;
  };
  const auto one_by_one = [](const at::Tensor& x, at::TensorList weights, at::TensorList biases) {
    return std::vector<at::Tensor>{linear(x, weights[0], biases[0]), linear(x, weights[1], biases[1])};
  };
  for (const bool is_second_frozen : {false, true}) {
    const auto wanted = gradients(one_by_one, is_second_frozen), got = gradients(fused_linears, is_second_frozen);
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(wanted[i].defined(), got[i].defined()) << i;
      if (!wanted[i].defined()) continue;
      EXPECT_EQ(wanted[i].scalar_type(), got[i].scalar_type()) << i;
      EXPECT_TRUE(tests::close(got[i], wanted[i].to(at::kDouble), at::kBFloat16, 1)) << i;
    }
  }
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

TEST(LowMatmul, WhereNothingIsWidenedOperandsAreCastOnce) {
  const UpcastMatmulGuard rule(false);
  const auto operands = linear_operands({9, 20}, 6, at::kFloat);
  const AutocastGuard autocast(at::kCPU, at::kBFloat16);
  const int64_t wanted = casts_in([&] { at::linear(operands[0], operands[1], operands[2]); });
  EXPECT_EQ(wanted, 3);
  EXPECT_EQ(casts_in([&] { linear(operands[0], operands[1], operands[2]); }), wanted);
}

TEST(LowMatmul, TogetherXIsCastOnce) {
  const UpcastMatmulGuard rule(false);
  const auto in = linear_operands({9, 20}, 6, at::kFloat);
  const AutocastGuard autocast(at::kCPU, at::kBFloat16);
  EXPECT_EQ(casts_in([&] { linears(in[0], {in[1], in[1], in[1]}, {in[2], in[2], in[2]}); }), 9);
  EXPECT_EQ(casts_in([&] { fused_linears(in[0], {in[1], in[1], in[1]}, {in[2], in[2], in[2]}); }), 3);
}

TEST(LowMatmul, OperandsAndResultsAreOfTheTypesAskedFor) {
  const at::Tensor a = tests::test_values({3, 4}, 1).to(at::kBFloat16), b = tests::test_values({4, 2}, 2).to(at::kBFloat16);
  const at::Tensor wanted = at::mm(a.to(at::kDouble), b.to(at::kDouble));
  for (const bool widens : {false, true}) {
    const UpcastMatmulGuard rule(widens);
    EXPECT_EQ(matmul_operand(a).scalar_type(), widens ? at::kFloat : at::kBFloat16);
    const AutocastGuard autocast(at::kCPU, at::kBFloat16);
    const at::Tensor wide = matmul(matmul_operand(a), matmul_operand(b), at::kFloat);
    EXPECT_EQ(wide.scalar_type(), at::kFloat);
    EXPECT_TRUE(tests::close(wide, wanted, widens ? at::kFloat : at::kBFloat16, 4)) << "autocast is left aside";
    EXPECT_EQ(matmul(matmul_operand(a), matmul_operand(b), at::kBFloat16).scalar_type(), at::kBFloat16);
  }
}

TEST(LowMatmul, IsWidenedWhereTheProcessorHasNoInstructions) {
  EXPECT_EQ(upcasts_matmul(at::kCPU, at::kBFloat16), !cpu_multiplies_bf16());
  EXPECT_EQ(upcasts_matmul(at::kCPU, at::kHalf), !cpu_multiplies_fp16());
  EXPECT_FALSE(upcasts_matmul(at::kCPU, at::kFloat));
  EXPECT_FALSE(upcasts_matmul(at::kCPU, at::kDouble));
  const UpcastMatmulGuard wide(true);
  EXPECT_FALSE(upcasts_matmul(at::kCUDA, at::kBFloat16));
  EXPECT_FALSE(upcasts_matmul(at::kCPU, at::kFloat));
}

}  // namespace
}  // namespace welkin::ops
