// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/gemm_provider.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "core/error.h"
#include "core/process/signal_stack.h"
#include "gradient_check.h"
#include "ops/base/instruction_set.h"
#include "ops/base/instruction_support.h"
#include "ops/gemm/mixed_matmul.h"
#include "tolerance.h"

namespace welkin::ops {
namespace {

class GemmProviderTest : public ::testing::Test {
 protected:
  ~GemmProviderTest() override { set_float32_matmul({}, Float32Precision::Highest); }
};

TEST_F(GemmProviderTest, NamesAndTheSwitch) {
  EXPECT_EQ(parse_gemm_provider("onednn"), GemmProvider::OneDnn);
  EXPECT_FALSE(parse_gemm_provider("blas").has_value());
  for (const GemmProvider provider : {GemmProvider::Mkl, GemmProvider::OneDnn}) {
    if (provider == GemmProvider::OneDnn && cpu_has_amx_bf16()) continue;
    set_gemm_provider(provider);
    EXPECT_EQ(gemm_provider(), provider);
    EXPECT_EQ(parse_gemm_provider(name_of(provider)), provider);
  }
}

// The switch speaks of bfloat16: no matmul may be rounded to it. Odd sizes and sizes at which oneDNN takes over.
TEST_F(GemmProviderTest, EveryProviderComputesInFloat32) {
  for (const GemmProvider provider : {GemmProvider::Mkl, GemmProvider::OneDnn}) {
    if (provider == GemmProvider::OneDnn && cpu_has_amx_bf16()) continue;
    set_gemm_provider(provider);
    for (const auto& [rows, depth, width] : {std::array<int64_t, 3>{7, 33, 5}, {256, 384, 384}, {300, 385, 1536}}) {
      const at::Tensor x = tests::test_values({rows, depth}, 1);
      const at::Tensor w = tests::test_values({width, depth}, 2);
      const at::Tensor b = tests::test_values({width}, 3);
      const at::Tensor g = tests::test_values({rows, width}, 4);
      std::vector<at::Tensor> results[2];
      for (const auto dtype : {at::kDouble, at::kFloat}) {
        std::vector<at::Tensor> leaves;
        for (const at::Tensor& leaf : {x, w, b}) leaves.push_back(leaf.to(at::kFloat).to(dtype).detach().requires_grad_(true));
        const at::Tensor y = at::linear(leaves[0], leaves[1], leaves[2]);
        auto& result = results[dtype == at::kFloat ? 1 : 0];
        result = torch::autograd::grad({y}, leaves, {g.to(at::kFloat).to(dtype)});
        result.push_back(y.detach());
      }
      for (size_t i = 0; i < results[0].size(); ++i) {
        const double error = results[1][i].to(at::kDouble).sub(results[0][i]).abs().max().item<double>();
        const double bound = 2.0 * tests::sum_tolerance(at::kFloat, std::max({rows, depth, width}));
        EXPECT_LE(error / results[0][i].abs().max().item<double>(), bound) << name_of(provider) << ' ' << rows << ' ' << i;
      }
    }
  }
}

// Exact products of rounded operands, summed in float32, also those that are left to torch; without tiles all stays float32.
TEST_F(GemmProviderTest, OperandsAreRoundedOnRequest) {
  set_float32_matmul({}, Float32Precision::Medium);
  const bool rounds = instruction_set() == InstructionSet::Amx;
  EXPECT_EQ(float32_parts(), rounds ? 1 : 0);
  const at::Tensor x = tests::test_values({256, 384}, 1).to(at::kFloat);
  const at::Tensor w = tests::test_values({384, 384}, 2).to(at::kFloat);
  const auto operand = [&](const at::Tensor& t) { return (rounds ? t.to(at::kBFloat16) : t).to(at::kDouble); };
  const at::Tensor wanted = at::linear(operand(x), operand(w));
  for (const at::Tensor& got : {at::linear(x, w), ops::linear(x, w)}) {
    EXPECT_EQ(got.scalar_type(), at::kFloat);
    EXPECT_TRUE(tests::close(got, wanted, at::kFloat, 384));
  }
  set_float32_matmul({}, Float32Precision::Highest);
  EXPECT_EQ(float32_parts(), 0);
  EXPECT_EQ(gemm_provider(), default_gemm_provider());
}

// What torch multiplies stays float32 then.
TEST_F(GemmProviderTest, HighKeepsSixteenBits) {
  set_float32_matmul({}, Float32Precision::High);
  EXPECT_EQ(gemm_provider(), default_gemm_provider());
  const bool has_tiles = instruction_set() == InstructionSet::Amx;
  EXPECT_EQ(float32_parts(), has_tiles ? 2 : 0);
  const at::Tensor x = tests::test_values({256, 384}, 1).to(at::kFloat);
  const at::Tensor w = tests::test_values({384, 384}, 2).to(at::kFloat);
  const at::Tensor wanted = at::linear(x.to(at::kDouble), w.to(at::kDouble));
  EXPECT_TRUE(tests::close(at::linear(x, w), wanted, at::kFloat, 384));
  const double error = tests::relative_l2(ops::linear(x, w), wanted);
  EXPECT_LE(error, 2 * sum_bound(has_tiles ? kTwoBf16 : kFp32, 384));
}

TEST_F(GemmProviderTest, MklRoundsNothing) {
  if (!cpu_has_amx_bf16()) GTEST_SKIP() << "this CPU has no AMX: medium changes nothing";
  EXPECT_THROW(set_float32_matmul(GemmProvider::Mkl, Float32Precision::Medium), ConfigError);
  set_float32_matmul(GemmProvider::Mkl, Float32Precision::High);
  EXPECT_EQ(gemm_provider(), GemmProvider::Mkl);
}

extern "C" void no_effect(int /*number*/) {}

// oneDNN's kernels keep values far below the stack pointer: without a stack for handlers, signals corrupt the heap within
// milliseconds.
TEST_F(GemmProviderTest, SignalsDoNotDisturbAMatmul) {
  if (cpu_has_amx_bf16()) GTEST_SKIP() << "oneDNN is not a provider on a CPU with AMX";
  const SignalStack stack;
  struct sigaction action {
  }, former{};
  action.sa_handler = no_effect;  // NOLINT: the signal interface
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  ASSERT_EQ(sigaction(SIGURG, &action, &former), 0);
  std::atomic<bool> is_over = false;
  std::thread sender([&is_over, computing = pthread_self()] {
    while (!is_over) {
      pthread_kill(computing, SIGURG);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  set_gemm_provider(GemmProvider::OneDnn);
  for (const auto& [rows, depth, width] : {std::array<int64_t, 3>{128, 64, 256}, {64, 128, 256}, {64, 128, 64}}) {
    const at::Tensor x = tests::test_values({rows, depth}, 1).to(at::kFloat);
    const at::Tensor w = tests::test_values({width, depth}, 2).to(at::kFloat);
    const at::Tensor first = at::linear(x, w);
    for (int i = 0; i < 2000; ++i) ASSERT_TRUE(at::linear(x, w).equal(first)) << rows << "x" << depth << "x" << width << " " << i;
  }
  is_over = true;
  sender.join();
  sigaction(SIGURG, &former, nullptr);
}

}  // namespace
}  // namespace welkin::ops
