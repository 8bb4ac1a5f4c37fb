// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/amx_matmul.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <gtest/gtest.h>

#include <limits>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "gradient_check.h"
#include "ops/base/instruction_set.h"
#include "ops/gemm/gelu_linear.h"
#include "ops/gemm/gemm_provider.h"
#include "ops/gemm/mixed_matmul.h"
#include "tolerance.h"

namespace welkin::ops {
namespace {

class AmxMatmul : public ::testing::Test {
 protected:
  void SetUp() override {
    if (instruction_set() != InstructionSet::Amx) GTEST_SKIP() << "this CPU has no tiles";
    set_float32_matmul({}, Float32Precision::High);
  }
  ~AmxMatmul() override { set_float32_matmul({}, Float32Precision::Highest); }
};

using Sizes = std::tuple<int64_t, int64_t, int64_t>;  // rows, depth, columns

// Whole tiles, edges of every dim, one row, long sums, more columns than rows, fewer.
const std::vector<Sizes> kSizes{{256, 384, 384}, {257, 385, 131},  {1, 2051, 2053}, {2049, 2051, 1},
                                {33, 4050, 47},  {70, 1537, 1600}, {700, 31, 217},  {1030, 64, 96}};

// The four ways in which two matrices may lie.
template <typename Check>
void with_every_layout(const at::Tensor& a, const at::Tensor& b, const Check& check) {
  const auto turned = [](const at::Tensor& x) { return x.t().contiguous().t(); };
  for (const at::Tensor& left : {a, turned(a)}) {
    for (const at::Tensor& right : {b, turned(b)}) check(left, right);
  }
}

TEST_F(AmxMatmul, KeepsSixteenBits) {
  for (const auto& [rows, depth, columns] : kSizes) {
    const at::Tensor a = tests::test_values({rows, depth}, 1).to(at::kFloat);
    const at::Tensor b = tests::test_values({depth, columns}, 2).to(at::kFloat);
    const at::Tensor bias = tests::test_values({columns}, 3).to(at::kFloat);
    const at::Tensor wanted = a.to(at::kDouble).mm(b.to(at::kDouble)).add(bias.to(at::kDouble));
    with_every_layout(a, b, [&, d = depth](const at::Tensor& left, const at::Tensor& right) {
      ASSERT_TRUE(amx_matmul_supports(left, right));
      const double error = tests::relative_l2(amx_matmul(left, right, bias), wanted);
      EXPECT_LE(error, 2 * (sum_bound(kTwoBf16, 1) + sum_bound(kFp32, d))) << left.sizes() << right.sizes();
    });
  }
}

// Numbers of eight bits have no small part: all that rounds are the sums.
TEST_F(AmxMatmul, IsFloat32sOfWhatBfloat16Holds) {
  const at::Tensor a = tests::test_values({257, 385}, 1).to(at::kBFloat16).to(at::kFloat);
  const at::Tensor b = tests::test_values({385, 131}, 2).to(at::kBFloat16).to(at::kFloat);
  EXPECT_TRUE(tests::close(amx_matmul(a, b), a.to(at::kDouble).mm(b.to(at::kDouble)), at::kFloat, 385));
}

TEST_F(AmxMatmul, DoesNotDependOnTheThreads) {
  const at::Tensor a = tests::test_values({700, 1700}, 1).to(at::kFloat);
  const at::Tensor b = tests::test_values({1700, 90}, 2).to(at::kFloat);
  const int before = at::get_num_threads();
  std::vector<at::Tensor> results;
  for (const int threads : {1, 2, 7}) {
    at::set_num_threads(threads);
    results.push_back(amx_matmul(a, b));
  }
  at::set_num_threads(before);
  for (const at::Tensor& result : results) EXPECT_TRUE(at::equal(result, results[0]));
}

TEST_F(AmxMatmul, PartsOfMatricesAndWhatItLeaves) {
  const at::Tensor whole = tests::test_values({600, 900}, 1).to(at::kFloat);
  const at::Tensor part = whole.narrow(0, 3, 300).narrow(1, 5, 400), other = whole.narrow(0, 1, 400).narrow(1, 7, 500);
  const at::Tensor wanted = part.to(at::kDouble).mm(other.to(at::kDouble));
  EXPECT_LE(tests::relative_l2(amx_matmul(part, other), wanted), 2 * (sum_bound(kTwoBf16, 1) + sum_bound(kFp32, 400)));
  EXPECT_FALSE(amx_matmul_supports(whole.to(at::kBFloat16), whole.t().to(at::kBFloat16)));
  EXPECT_FALSE(amx_matmul_supports(whole.narrow(0, 0, 8), whole.narrow(0, 0, 8).t())) << "too small to be worth it";
  EXPECT_FALSE(amx_matmul_supports(whole.as_strided({300, 450}, {1800, 2}), whole.narrow(0, 0, 450))) << "gaps both ways";
  set_float32_matmul({}, Float32Precision::Highest);
  EXPECT_FALSE(amx_matmul_supports(whole, whole.t())) << "not without leave";
}

// A bias is broadcast or refused as at::linear does it.
TEST_F(AmxMatmul, ABiasOfAnotherShapeIsAtens) {
  const at::Tensor x = tests::test_values({300, 256}, 1).to(at::kFloat),
                   weight = tests::test_values({256, 256}, 2).to(at::kFloat);
  const at::Tensor one = tests::test_values({1}, 3).to(at::kFloat), some = tests::test_values({100}, 3).to(at::kFloat);
  EXPECT_TRUE(tests::close(ops::linear(x, weight, one), at::linear(x, weight, one), at::kFloat, 256));
  EXPECT_THROW(ops::linear(x, weight, some), c10::Error);
  EXPECT_THROW(gelu_linear(x, weight, some), c10::Error);
  EXPECT_THROW(ops::linear(x.narrow(1, 0, 250), weight), c10::Error);
  EXPECT_THROW(amx_matmul(x, weight.t(), some), InternalError);
}

TEST_F(AmxMatmul, WhatIsNotFiniteStaysInItsRow) {
  const at::Tensor a = tests::test_values({300, 200}, 1).to(at::kFloat), b = tests::test_values({200, 100}, 2).to(at::kFloat);
  a.select(0, 7).select(0, 11).fill_(std::numeric_limits<double>::infinity());
  const at::Tensor got = amx_matmul(a, b);
  EXPECT_FALSE(got.select(0, 7).isfinite().any().item<bool>());
  EXPECT_TRUE(got.narrow(0, 8, 200).isfinite().all().item<bool>());
}

// Of numbers that round to an infinite bfloat16 the small part has what the large one cannot.
TEST_F(AmxMatmul, TheGreatestNumbersAreFinite) {
  const at::Tensor a = tests::test_values({300, 200}, 1).mul(0x1.FFFFFEp127).to(at::kFloat);
  const at::Tensor b = tests::test_values({200, 100}, 2).mul(0x1p-60).to(at::kFloat);
  a.select(1, 5).fill_(0x1.FFFFFEp127);
  a.select(1, 7).fill_(-0x1.FF9p127);
  with_every_layout(a, b, [&](const at::Tensor& left, const at::Tensor& right) {
    const double error = tests::relative_l2(amx_matmul(left, right), a.to(at::kDouble).mm(b.to(at::kDouble)));
    EXPECT_LE(error, 2 * (sum_bound(kTwoBf16, 1) + sum_bound(kFp32, 200)));
  });
}

TEST_F(AmxMatmul, InfinitiesAreThoseOfFloat32) {
  const at::Tensor a = tests::test_values({300, 200}, 1).to(at::kFloat), b = tests::test_values({200, 100}, 2).to(at::kFloat);
  a.select(0, 7).select(0, 11).fill_(-std::numeric_limits<double>::infinity());
  EXPECT_TRUE(at::equal(amx_matmul(a, b).select(0, 7), at::mm(a, b).select(0, 7)));
  EXPECT_TRUE(at::equal(amx_matmul(b.t(), a.t()).select(1, 7), at::mm(a, b).select(0, 7)));
}

}  // namespace
}  // namespace welkin::ops
