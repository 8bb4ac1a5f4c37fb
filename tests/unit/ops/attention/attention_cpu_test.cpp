// SPDX-License-Identifier: Apache-2.0
// Our CPU kernels against aten's form in double, on every instruction set that the machine has.
#include "ops/attention/attention_cpu.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <functional>
#include <limits>
#include <ostream>
#include <vector>

#include "core/error.h"
#include "gradient_check.h"
#include "ops/attention/attention.h"
#include "ops/base/instruction_set.h"
#include "ops/gemm/gemm_provider.h"
#include "tolerance.h"

namespace welkin::ops {
namespace {

class SetGuard {
 public:
  explicit SetGuard(InstructionSet set) : before_(instruction_set()) { set_instruction_set(set); }
  ~SetGuard() { set_instruction_set(before_); }

 private:
  InstructionSet before_;
};

struct AttentionCase {
  int64_t batch, heads, queries, keys, head_dim;
  friend std::ostream& operator<<(std::ostream& out, const AttentionCase& c) {
    return out << c.batch << 'x' << c.heads << 'x' << c.queries << 'x' << c.keys << 'x' << c.head_dim;
  }
};

// Blocks and their neighbours, tails of every kind, all the vector counts of a row (head dims 1 to 192), several ranges of keys.
const std::vector<AttentionCase> kAttentionCases{
    {1, 1, 1, 1, 1},      {2, 3, 5, 7, 4},      {1, 2, 47, 95, 16},    {1, 2, 48, 96, 24},   {1, 1, 49, 97, 32},
    {2, 1, 50, 191, 48},  {1, 2, 97, 193, 64},  {1, 1, 33, 385, 72},   {1, 1, 20, 30, 80},   {1, 1, 144, 192, 96},
    {1, 1, 60, 50, 112},  {1, 1, 51, 64, 128},  {1, 1, 17, 70, 192},   {1, 1, 70, 2000, 48}, {1, 1, 260, 300, 17},
    {1, 2, 131, 257, 33}, {1, 1, 65, 1100, 64}, {1, 1, 129, 1030, 96}, {1, 1, 40, 600, 192}, {1, 1, 40, 80, 320}};

struct Inputs {
  at::Tensor q, k, v, grad;  // double

  explicit Inputs(const AttentionCase& c)
      : q(tests::test_values({c.batch, c.heads, c.queries, c.head_dim}, 1).mul(3.0)),
        k(tests::test_values({c.batch, c.heads, c.keys, c.head_dim}, 2)),
        v(tests::test_values({c.batch, c.heads, c.keys, c.head_dim}, 3)),
        grad(tests::test_values({c.batch, c.heads, c.queries, c.head_dim}, 4)) {}
};

using AttentionForm = std::function<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&)>;

// Result and gradients by q, k, v, in double.
std::vector<at::Tensor> run(const AttentionForm& form, const Inputs& in, at::ScalarType dtype) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& x : {in.q, in.k, in.v}) leaves.push_back(x.to(dtype).detach().requires_grad_(true));
  const at::Tensor out = form(leaves[0], leaves[1], leaves[2]);
  auto results = torch::autograd::grad({out}, leaves, {in.grad.to(dtype)});
  results.insert(results.begin(), out.detach());
  for (at::Tensor& x : results) x = x.to(at::kDouble);
  return results;
}

// Each result is a sum over keys, queries or the head dim of rounded numbers; logits of a few units stand in an exponent.
double bound(const AttentionCase& c, at::ScalarType dtype) {
  return 2.0 * tests::sum_tolerance(dtype, std::max({c.queries, c.keys, c.head_dim}));
}

class AttentionCpu : public ::testing::TestWithParam<InstructionSet> {
 protected:
  void SetUp() override {
    if (!is_supported(GetParam())) GTEST_SKIP() << "this CPU has no " << name_of(GetParam());
    guard_.emplace(GetParam());
  }
  std::optional<SetGuard> guard_;
};

void expect_close(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& wanted, double tolerance) {
  const std::vector<const char*> names{"out", "grad_q", "grad_k", "grad_v"};
  for (size_t i = 0; i < got.size(); ++i) {
    const double scale = std::max(wanted[i].abs().max().item<double>(), 1e-3);
    EXPECT_LE(got[i].sub(wanted[i]).abs().max().item<double>() / scale, tolerance) << names[i];
  }
}

TEST_P(AttentionCpu, EqualsTheReferenceForEveryShape) {
  for (const AttentionCase& c : kAttentionCases) {
    SCOPED_TRACE(::testing::PrintToString(c));
    const Inputs in(c);
    expect_close(run(attention, in, at::kFloat), run(attention_reference, in, at::kDouble), bound(c, at::kFloat));
  }
}

TEST_P(AttentionCpu, TakesLowPrecisionAndRoundsOnlyWhatComesInAndGoesOut) {
  const AttentionCase c{2, 2, 50, 191, 48};
  for (const auto dtype : {at::kBFloat16, at::kHalf}) {
    Inputs in(c);
    for (at::Tensor* x : {&in.q, &in.k, &in.v, &in.grad}) *x = x->to(dtype).to(at::kDouble);
    // One rounding of the result; the gradients see the rounded result through its product with the gradient as well.
    expect_close(run(attention, in, dtype), run(attention_reference, in, at::kDouble), tests::sum_tolerance(dtype, 1));
  }
}

// Operands are exact; what is rounded besides the result are weights and the logits' gradients, as operands of second matmuls.
TEST_P(AttentionCpu, OfBfloat16EqualsTheReferenceForEveryShape) {
  for (const AttentionCase& c : kAttentionCases) {
    SCOPED_TRACE(::testing::PrintToString(c));
    Inputs in(c);
    for (at::Tensor* x : {&in.q, &in.k, &in.v, &in.grad}) *x = x->to(at::kBFloat16).to(at::kDouble);
    expect_close(run(attention, in, at::kBFloat16), run(attention_reference, in, at::kDouble),
                 2.0 * tests::sum_tolerance(at::kBFloat16, 1));
  }
}

// In double it is aten's form, which attention_test.cpp compares with the definition.
TEST_P(AttentionCpu, DropsTheSameWeightsAsTheFormInAten) {
  for (const AttentionCase& c : kAttentionCases) {
    const MaskWindow inside{{c.heads + 2, c.queries + 60, c.keys + 9}, {1, 50, 7}};
    for (const MaskWindow& window : {MaskWindow{}, inside}) {
      SCOPED_TRACE(::testing::PrintToString(c));
      std::vector<int64_t> numbers;
      for (int64_t b = 0; b < c.batch; ++b) numbers.push_back(70 + 3 * b);
      const MaskKey key{11, at::scalar_tensor(int64_t{2}, at::kLong), at::tensor(numbers, at::kLong)};
      const AttentionForm dropped = [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
        return attention_with_dropout(q, k, v, 0.3, key, window);
      };
      Inputs in(c);
      expect_close(run(dropped, in, at::kFloat), run(dropped, in, at::kDouble), bound(c, at::kFloat));
      for (at::Tensor* x : {&in.q, &in.k, &in.v, &in.grad}) *x = x->to(at::kBFloat16).to(at::kDouble);
      expect_close(run(dropped, in, at::kBFloat16), run(dropped, in, at::kDouble), 2.0 * tests::sum_tolerance(at::kBFloat16, 1));
    }
  }
}

TEST_P(AttentionCpu, TakesAnyStrides) {
  const AttentionCase c{2, 3, 50, 50, 24};
  const Inputs in(c);
  const auto wanted = run(attention, in, at::kFloat);
  const auto wanted_narrow = run(attention, in, at::kBFloat16);
  Inputs turned = in;
  turned.q = in.q.transpose(1, 2).contiguous().transpose(1, 2);  // as a linear layer leaves it
  turned.k = in.k.transpose(2, 3).contiguous().transpose(2, 3);  // rows that are not dense
  turned.grad = in.grad.transpose(0, 3).contiguous().transpose(0, 3);
  const auto got = run(attention, turned, at::kFloat);
  const auto got_narrow = run(attention, turned, at::kBFloat16);
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(at::equal(got[i], wanted[i])) << i;
    EXPECT_TRUE(at::equal(got_narrow[i], wanted_narrow[i])) << i;
  }
}

TEST_P(AttentionCpu, LargeLogitsNeitherOverflowNorVanish) {
  const AttentionCase c{1, 1, 60, 400, 16};
  Inputs in(c);
  in.q = in.q.mul(100.0);
  in.k = in.k.mul(10.0);
  const auto got = run(attention, in, at::kFloat);
  for (const at::Tensor& x : got) EXPECT_TRUE(x.isfinite().all().item<bool>());
  // The absolute error of a logit is its size, up to 16 * 3000, times its relative one, and stands in an exponent.
  const at::Tensor logits = in.q.matmul(in.k.transpose(2, 3)).abs().max().div(4.0);
  expect_close({got[0]}, {run(attention_reference, in, at::kDouble)[0]}, logits.item<double>() * bound(c, at::kFloat));
}

// Logits that grow from key to key, by far more than a power of two may: each block of keys finds a greater one.
TEST_P(AttentionCpu, LaterKeysMayOutweighAllBefore) {
  const AttentionCase c{1, 1, 70, 900, 32};
  Inputs in(c);
  in.q = in.q.abs();
  in.k = in.k.abs().mul(at::arange(c.keys, at::kDouble).reshape({1, 1, -1, 1}).mul(0.5));
  for (at::Tensor* x : {&in.q, &in.k, &in.v, &in.grad}) *x = x->to(at::kBFloat16).to(at::kDouble);
  const auto got = run(attention, in, at::kBFloat16);
  for (const at::Tensor& x : got) EXPECT_TRUE(x.isfinite().all().item<bool>());
  // As for large logits, in float32 besides the rounding of weights.
  const at::Tensor logits = in.q.matmul(in.k.transpose(2, 3)).abs().max().div(std::sqrt(32.0));
  expect_close({got[0]}, {run(attention_reference, in, at::kDouble)[0]},
               logits.item<double>() * bound(c, at::kFloat) + 2.0 * tests::sum_tolerance(at::kBFloat16, 1));
}

// One key outweighs all others, and its logit is a number whose last place is far beyond what a power of two may be.
Inputs with_logits_of(double size, at::ScalarType dtype) {
  Inputs in({1, 2, 40, 600, 16});
  in.q.zero_().select(3, 0).fill_(4.0);  // the scale is 1/4
  in.k.zero_().select(3, 0).copy_(at::arange(600, at::kDouble).mul(7).remainder(601).mul(size / 601));
  in.k.select(2, 411).select(2, 0).fill_(2 * std::abs(size));
  for (at::Tensor* x : {&in.q, &in.k, &in.v, &in.grad}) *x = x->to(dtype).to(at::kDouble);
  return in;
}

void expect_the_heaviest_key(const Inputs& in, at::ScalarType dtype, double tolerance) {
  const auto got = run(attention, in, dtype);
  for (const at::Tensor& x : got) EXPECT_TRUE(x.isfinite().all().item<bool>());
  const auto wanted = run(attention_reference, in, at::kDouble);
  expect_close({got[0]}, {wanted[0]}, tolerance);
  const at::Tensor grad_v = wanted[3].sub(got[3]).abs();
  EXPECT_LE(grad_v.max().item<double>(), tolerance * wanted[3].abs().max().item<double>());
}

TEST_P(AttentionCpu, LogitsMayBeCoarserThanAPowerOfTwoReaches) {
  for (const double size : {1e8, 6e8, 3.5e9, 1e12, 1e18, 1e24, -1e12}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      SCOPED_TRACE(::testing::Message() << dtype << ", logits of " << size);
      expect_the_heaviest_key(with_logits_of(size, dtype), dtype, 2.0 * tests::sum_tolerance(dtype, 40));
    }
  }
}

// The sum of values before they are divided by the weights' is not beyond float32, where the result is far from that.
TEST_P(AttentionCpu, LargeValuesHaveAFiniteMean) {
  Inputs in({1, 1, 40, 700, 16});
  in.q.zero_().select(3, 0).fill_(4.0);
  in.k.zero_().slice(2, 64).select(3, 0).fill_(17.25);  // those keys weigh 2^25 times the first ones
  in.v.abs_().add_(1.0).mul_(1e30);
  in.grad.mul_(1e-30);
  for (at::Tensor* x : {&in.q, &in.k, &in.v, &in.grad}) *x = x->to(at::kBFloat16).to(at::kDouble);
  const auto got = run(attention, in, at::kBFloat16);
  for (const at::Tensor& x : got) EXPECT_TRUE(x.isfinite().all().item<bool>());
  expect_close({got[0]}, {run(attention_reference, in, at::kDouble)[0]}, 2.0 * tests::sum_tolerance(at::kBFloat16, 1));
}

// Products of finite operands that overflow: keys without weight, more of them than a block has, and queries without any key.
TEST_P(AttentionCpu, KeysOutOfReachHaveNoWeight) {
  const AttentionCase c{1, 1, 40, 600, 16};
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const int64_t beyond : {40, 300, 600}) {
      SCOPED_TRACE(::testing::Message() << dtype << ", keys out of reach: " << beyond);
      Inputs in(c);
      in.q.fill_(0x1p66);
      in.k.zero_().narrow(2, 0, beyond).fill_(-0x1p66);
      for (at::Tensor* x : {&in.v, &in.grad}) *x = x->to(dtype).to(at::kDouble);
      // What is beyond float32's numbers is not beyond those of double.
      const auto wanted = run(attention_reference, in, beyond == c.keys ? dtype : at::kDouble);
      expect_close(run(attention, in, dtype), wanted, std::max(bound(c, at::kFloat), 2.0 * tests::sum_tolerance(dtype, 1)));
    }
  }
}

TEST_P(AttentionCpu, NanStaysInItsHead) {
  const AttentionCase c{1, 2, 50, 200, 16};
  Inputs in(c);
  in.k[0][1][150][3] = std::numeric_limits<double>::quiet_NaN();
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto got = run(attention, in, dtype);
    EXPECT_TRUE(got[0].select(1, 1).isnan().all().item<bool>());
    EXPECT_TRUE(got[1].select(1, 1).isnan().any().item<bool>());
    for (const at::Tensor& x : got) EXPECT_TRUE(x.select(1, 0).isfinite().all().item<bool>());
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, AttentionCpu,
                         ::testing::Values(InstructionSet::Portable, InstructionSet::Avx2, InstructionSet::Avx512,
                                           InstructionSet::Amx),
                         [](const auto& set) { return std::string(name_of(set.param)); });

class AttentionCpuRounded : public ::testing::Test {
 protected:
  void SetUp() override {
    if (instruction_set() != InstructionSet::Amx) GTEST_SKIP() << "this CPU has no AMX";
  }
  ~AttentionCpuRounded() override { set_float32_matmul({}, Float32Precision::Highest); }
};

// As of bfloat16 operands, but what goes in and out is float32.
TEST_F(AttentionCpuRounded, TakesRoundedOperandsOfFloat32) {
  set_float32_matmul({}, Float32Precision::Medium);
  const AttentionCase c{2, 2, 131, 257, 48};
  const Inputs in(c);
  Inputs rounded(c);
  for (at::Tensor* x : {&rounded.q, &rounded.k, &rounded.v}) *x = x->to(at::kBFloat16).to(at::kDouble);
  const auto got = run(attention, in, at::kFloat);
  const auto exact = run(attention, in, at::kDouble);
  set_float32_matmul({}, Float32Precision::Highest);
  expect_close(got, run(attention_reference, rounded, at::kDouble), 2.0 * tests::sum_tolerance(at::kBFloat16, 1));
  // Double goes to aten's form and float32 without leave is not rounded.
  expect_close(exact, run(attention_reference, in, at::kDouble), bound(c, at::kDouble));
  expect_close(run(attention, in, at::kFloat), run(attention_reference, in, at::kDouble), bound(c, at::kFloat));
}

TEST_F(AttentionCpuRounded, OfTwoPartsKeepsSixteenBits) {
  set_float32_matmul({}, Float32Precision::High);
  for (const AttentionCase& c : kAttentionCases) {
    if (c.keys == 1) continue;  // its gradients by q and k are differences of equal numbers
    SCOPED_TRACE(::testing::PrintToString(c));
    const Inputs in(c);
    expect_close(run(attention, in, at::kFloat), run(attention_reference, in, at::kDouble),
                 2.0 * sum_bound(kTwoBf16, 1) + bound(c, at::kFloat));
  }
}

TEST_F(AttentionCpuRounded, OfTwoPartsTakesTheGreatestNumbers) {
  set_float32_matmul({}, Float32Precision::High);
  Inputs in({1, 2, 40, 300, 16});
  in.q.fill_(0x1.FFFFFEp127);
  in.k = in.k.mul(0x1p-127);
  for (const at::Tensor& x : run(attention, in, at::kFloat)) EXPECT_TRUE(x.isfinite().all().item<bool>());
}

TEST_F(AttentionCpuRounded, OfTwoPartsTakesCoarseLogits) {
  set_float32_matmul({}, Float32Precision::High);
  for (const double size : {3.5e9, 1e18, 1e24, -1e12}) {
    SCOPED_TRACE(::testing::Message() << "logits of " << size);
    expect_the_heaviest_key(with_logits_of(size, at::kFloat), at::kFloat, 2.0 * sum_bound(kTwoBf16, 40));
  }
}

TEST(AttentionCpuLayout, HeadsLieBesideEachOther) {
  const Inputs in({2, 3, 5, 7, 4});
  const at::Tensor out = attention(in.q.to(at::kFloat), in.k.to(at::kFloat), in.v.to(at::kFloat));
  EXPECT_TRUE(out.transpose(1, 2).is_contiguous());
}

TEST(AttentionCpuLayout, RefusesWhatItCannot) {
  const Inputs in({2, 3, 5, 7, 4});
  const at::Tensor q = in.q.to(at::kFloat);
  EXPECT_FALSE(attention_cpu_supports(in.q, in.k, in.v));  // double: aten's
  EXPECT_FALSE(attention_cpu_supports(q, in.k.to(at::kHalf), in.v.to(at::kFloat)));
  EXPECT_FALSE(attention_cpu_supports(q, at::empty({2, 3, 0, 4}), at::empty({2, 3, 0, 4})));
}

TEST(InstructionSets, AreNamedAndTheBestIsInUse) {
  EXPECT_EQ(parse_instruction_set("avx2"), InstructionSet::Avx2);
  EXPECT_FALSE(parse_instruction_set("sse9").has_value());
  EXPECT_TRUE(is_supported(InstructionSet::Portable));
  EXPECT_EQ(instruction_set(), best_instruction_set());
  EXPECT_EQ(instruction_set() >= InstructionSet::Avx512, is_supported(InstructionSet::Avx512));
}

}  // namespace
}  // namespace welkin::ops
