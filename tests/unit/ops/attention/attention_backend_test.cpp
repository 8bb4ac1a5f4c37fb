// SPDX-License-Identifier: Apache-2.0
// Which of torch's forms of attention is taken, with a clock of the test's own.
#include "ops/attention/attention_backend.h"

#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace welkin::ops {
namespace {

using Backend = AttentionBackend;

TEST(AttentionBackends, HaveTheNamesOfTheKey) { EXPECT_EQ(name_of(Backend::MemoryEfficient), "memory_efficient"); }

TEST(AttentionBackends, TheFastestThatCanRunIsTaken) {
  EXPECT_EQ(fastest({{Backend::Flash, 2e-3}, {Backend::MemoryEfficient, 1e-3}, {Backend::CuDnn, {}}, {Backend::Math, 9e-3}}),
            Backend::MemoryEfficient);
  EXPECT_EQ(fastest({{Backend::Flash, {}}, {Backend::MemoryEfficient, 1e-3}, {Backend::CuDnn, 1e-3}}), Backend::MemoryEfficient);
  EXPECT_FALSE(fastest({{Backend::Flash, {}}}));
  EXPECT_EQ(text_of({{Backend::Flash, 1.206e-3}, {Backend::CuDnn, {}}, {Backend::Math, 9e-3}}),
            "flash 1.21 ms, cudnn cannot, math 9.00 ms");
}

// A CPU has the flash and the plain form.
TEST(AttentionBackends, EachIsTimedAloneAndTheSwitchesAreAsBefore) {
  std::vector<std::string> on;
  const TimeOf clock = [&](const std::function<void()>& work, int repeats) {
    const at::Context& context = at::globalContext();
    on.push_back(std::string(context.userEnabledFlashSDP() ? "f" : "") + (context.userEnabledMemEfficientSDP() ? "e" : "") +
                 (context.userEnabledCuDNNSDP() ? "c" : "") + (context.userEnabledMathSDP() ? "m" : ""));
    work();
    return 0.001 * repeats;
  };
  const auto timings =
      time_attention({.batch = 1, .heads = 2, .tokens = 16, .head_dim = 8, .dtype = at::kFloat}, at::kCPU, clock, 3);
  EXPECT_THAT(on, ::testing::ElementsAre("f", "e", "c", "m"));
  ASSERT_EQ(timings.size(), 4U);
  EXPECT_EQ(timings[0].seconds, 0.003);
  EXPECT_EQ(timings[3].seconds, 0.003);
  EXPECT_TRUE(at::globalContext().userEnabledFlashSDP() && at::globalContext().userEnabledMathSDP());
}

// 4 samples of 16,200 tokens in 8 heads have 34 GB of weights.
TEST(AttentionBackends, ThePlainFormIsNotTimedWhereItsWeightsAreLarge) {
  const AttentionShape large{.batch = 4, .heads = 8, .tokens = 2100, .head_dim = 8, .dtype = at::kFloat};
  int calls = 0;
  const TimeOf clock = [&](const std::function<void()>& /*work*/, int /*repeats*/) { return ++calls * 1e-3; };
  const auto timings = time_attention(large, at::kCPU, clock);
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(timings[3].is_too_large && !timings[3].seconds);
  EXPECT_EQ(text_of(timings), "flash 1.00 ms, memory_efficient 2.00 ms, cudnn 3.00 ms, math too large to be timed");
  const TimeOf refuses = [&](const std::function<void()>& work, int /*repeats*/) {
    if (at::globalContext().userEnabledMathSDP()) return 0.5;
    TORCH_CHECK(false, "No available kernel");
    work();
    return 0.0;
  };
  EXPECT_EQ(time_attention(large, at::kCPU, refuses)[3].seconds, 0.5) << "nothing else can run";
}

// Strides decide whether a form takes q, k and v as they are.
TEST(AttentionBackends, AreTimedWithTheHeadsOfATokenSideBySide) {
  for (const at::Tensor& x :
       attention_operands({.batch = 1, .heads = 2, .tokens = 16, .head_dim = 8, .dtype = at::kFloat}, at::kCPU)) {
    EXPECT_THAT(x.sizes().vec(), ::testing::ElementsAre(1, 2, 16, 8));
    EXPECT_THAT(x.strides().vec(), ::testing::ElementsAre(16 * 2 * 8, 8, 2 * 8, 1));
    EXPECT_TRUE(x.requires_grad());
  }
}

// The forms that torch may take now, in its order of preference: f(lash), e(fficient), c(uDNN), m(ath).
std::string torchs_order() {
  at::Context& context = at::globalContext();
  std::string order;
  for (const at::SDPBackend form : context.sDPPriorityOrder()) {
    if (form == at::SDPBackend::flash_attention && context.userEnabledFlashSDP()) order += 'f';
    if (form == at::SDPBackend::efficient_attention && context.userEnabledMemEfficientSDP()) order += 'e';
    if (form == at::SDPBackend::cudnn_attention && context.userEnabledCuDNNSDP()) order += 'c';
    if (form == at::SDPBackend::math && context.userEnabledMathSDP()) order += 'm';
  }
  return order;
}

// The losses before the first step are in float32, which flash and cuDNN do not take: the plain form's memory would not do.
TEST(AttentionBackends, WhatIsTakenHasAFormForFloat32BesideItThatNeedsLittleMemory) {
  for (const auto& [backend, order] : {std::pair(Backend::CuDnn, "cem"), std::pair(Backend::Flash, "fem"),
                                       std::pair(Backend::MemoryEfficient, "em"), std::pair(Backend::Math, "m")}) {
    set_attention_backend(backend);
    EXPECT_EQ(torchs_order(), order);
    EXPECT_EQ(attention_backend_in_use(), name_of(backend));
  }
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  set_attention_backend(Backend::Flash);
  EXPECT_EQ(torchs_order(), "fm") << "the memory-efficient form's gradients do not repeat";
  EXPECT_EQ(attention_backend_in_use(), "flash");
  at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false);
  at::globalContext().setSDPUseFlash(true);
  at::globalContext().setSDPUseMemEfficient(true);
  at::globalContext().setSDPUseCuDNN(true);
  EXPECT_EQ(attention_backend_in_use(), "aten's choice");
}

}  // namespace
}  // namespace welkin::ops
