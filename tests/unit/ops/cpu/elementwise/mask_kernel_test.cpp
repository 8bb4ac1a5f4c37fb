// SPDX-License-Identifier: Apache-2.0
// Against one block at a time, on every instruction set that the machine has.
#include "ops/cpu/elementwise/mask_kernel.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/philox.h"
#include "on_instruction_set.h"

namespace welkin::ops {
namespace {

class MaskKernels : public OnInstructionSet {};

TEST_P(MaskKernels, FactorsAreThoseOfTheWords) {
  const MaskRule rule = mask_rule(0x123456789abcdef0, 0.3);
  const uint64_t counter = mask_counter(1'000'003, 77);
  for (const uint64_t start : {uint64_t{0}, uint64_t{1}, uint64_t{3}, uint64_t{62}, (uint64_t{1} << 34) - 2}) {
    for (const int64_t count : {1, 2, 63, 64, 65, 500}) {
      std::vector<float> factors(static_cast<size_t>(count) + 1, -1.0F);
      mask_kernel(GetParam()).factors(rule, counter, start, count, factors.data());
      for (int64_t i = 0; i < count; ++i) {
        const uint64_t element = start + static_cast<uint64_t>(i);
        const uint32_t word = philox(rule.stream, counter, element / 4)[element % 4];
        ASSERT_EQ(factors[static_cast<size_t>(i)], word >= rule.threshold ? rule.scale : 0.0F) << start << " " << i;
      }
      EXPECT_EQ(factors.back(), -1.0F) << "nothing is written behind the last";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, MaskKernels,
                         ::testing::Values(InstructionSet::Portable, InstructionSet::Avx2, InstructionSet::Avx512),
                         [](const auto& set) { return std::string(name_of(set.param)); });

}  // namespace
}  // namespace welkin::ops
