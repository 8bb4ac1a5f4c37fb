// SPDX-License-Identifier: Apache-2.0
#include "ops/base/processor_override.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "ops/base/instruction_support.h"

namespace welkin::ops {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ProcessorOverride, IsWhatTheEnvironmentSays) {
  const ProcessorOverride none = parse_processor_override(nullptr, nullptr, nullptr);
  EXPECT_FALSE(none.best_set.has_value());
  EXPECT_FALSE(none.bf16_dot.has_value());
  EXPECT_EQ(none.gemm, "");
  const ProcessorOverride said = parse_processor_override("avx512", "slow", "onednn");
  EXPECT_EQ(said.best_set, InstructionSet::Avx512);
  EXPECT_EQ(said.bf16_dot, Bf16Dot::Slow);
  EXPECT_EQ(said.gemm, "onednn");
}

TEST(ProcessorOverride, NamesWhatIsNoChoice) {
  EXPECT_THAT([] { parse_processor_override("sse9", nullptr, nullptr); },
              ThrowsMessage<ConfigError>(HasSubstr("WELKIN_INSTRUCTION_SET=sse9. Choose portable, avx2, avx512 or amx")));
  EXPECT_THAT([] { parse_processor_override(nullptr, "quick", nullptr); },
              ThrowsMessage<ConfigError>(HasSubstr("WELKIN_BF16_DOT=quick. Choose none, slow or fast")));
  EXPECT_THAT([] { parse_processor_override(nullptr, nullptr, "blas"); },
              ThrowsMessage<ConfigError>(HasSubstr("WELKIN_GEMM=blas. Choose mkl or onednn")));
}

// Of this process, whatever its environment says: tests/unit_programs_on_processors runs it under each.
TEST(ProcessorOverride, HoldsWhatTheProcessorHas) {
  const ProcessorOverride& said = processor_override();
  if (said.best_set) {
    EXPECT_EQ(best_instruction_set(), *said.best_set);
    EXPECT_EQ(cpu_has_amx_bf16(), *said.best_set == InstructionSet::Amx);
  }
  if (said.bf16_dot) {
    EXPECT_EQ(cpu_has_fast_bf16(), *said.bf16_dot == Bf16Dot::Fast);
  }
  EXPECT_EQ(cpu_multiplies_bf16(), cpu_has_amx_bf16() || cpu_has_fast_bf16());
}

}  // namespace
}  // namespace welkin::ops
