// SPDX-License-Identifier: Apache-2.0
#include "ops/base/autocast.h"

#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

namespace welkin::ops {
namespace {

TEST(Autocast, GuardTurnsItOnAndRestores) {
  const at::Tensor x = at::ones({4, 4});
  {
    const AutocastGuard guard(at::kCPU, at::kBFloat16);
    EXPECT_EQ(at::matmul(x, x).scalar_type(), at::kBFloat16);
    {
      const AutocastGuard off(at::kCPU, std::nullopt);
      EXPECT_EQ(at::matmul(x, x).scalar_type(), at::kFloat);
    }
    EXPECT_EQ(at::matmul(x, x).scalar_type(), at::kBFloat16);
  }
  EXPECT_EQ(at::matmul(x, x).scalar_type(), at::kFloat);
}

TEST(Autocast, OperandsAreCastByOperatorClass) {
  const at::Tensor single = at::ones({2});
  const at::Tensor low = single.to(at::kBFloat16);
  EXPECT_TRUE(cast_operand(single, OperatorClass::Matmul).is_same(single));  // outside of a scope
  const AutocastGuard guard(at::kCPU, at::kBFloat16);
  EXPECT_EQ(cast_operand(single, OperatorClass::Matmul).scalar_type(), at::kBFloat16);
  EXPECT_EQ(cast_operand(low, OperatorClass::Reduction).scalar_type(), at::kFloat);
  EXPECT_EQ(cast_operand(low, OperatorClass::Pointwise).scalar_type(), at::kBFloat16);
  EXPECT_EQ(cast_operand(at::ones({2}, at::kDouble), OperatorClass::Matmul).scalar_type(), at::kDouble);
  EXPECT_EQ(cast_operand(at::ones({2}, at::kLong), OperatorClass::Reduction).scalar_type(), at::kLong);
}

}  // namespace
}  // namespace welkin::ops
