// SPDX-License-Identifier: Apache-2.0
// Against the conversions of one number (ops/cpu/lanes/bf16.h), bit by bit, on every instruction set that the machine has.
#include "ops/cpu/elementwise/convert_kernel.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "on_instruction_set.h"

namespace welkin::ops {
namespace {

// Numbers of every kind: ties of the rounding both ways, overflow into infinity, denormals, infinities and NaN.
std::vector<float> numbers(size_t count) {
  std::vector<float> some;
  for (const uint32_t bits : {0x3F808000U, 0x3F818000U, 0x3F807FFFU, 0x7F7FFFFFU, 0x00000001U, 0x00008000U, 0x80000000U,
                              0x7F800000U, 0xFF800000U, 0x7F800001U, 0x7FFFFFFFU, 0xFFC00000U}) {
    some.push_back(std::bit_cast<float>(bits));
  }
  for (uint32_t i = 0; some.size() < count; ++i) some.push_back(std::bit_cast<float>(i * 2654435761U & 0xBFFFFFFFU));
  return some;
}

// Vectors, and what is left over.
constexpr size_t kCount = 3 * 16 + 13;

class ConvertKernelOf : public OnInstructionSet {};

TEST_P(ConvertKernelOf, NarrowsAndRoundsAsOneNumberIs) {
  const std::vector<float> from = numbers(kCount);
  std::vector<Bf16> narrow(kCount);
  std::vector<float> round = from;
  convert_kernel(GetParam()).narrow(from.data(), nullptr, narrow.data(), 1, kCount);
  convert_kernel(GetParam()).round(round.data(), round.data(), kCount);
  for (size_t i = 0; i < kCount; ++i) {
    const Bf16 right = rounded_to<Bf16>(from[i]);
    EXPECT_EQ(narrow[i].bits, right.bits) << i;
    EXPECT_EQ(std::bit_cast<uint32_t>(round[i]), std::bit_cast<uint32_t>(to_float(right))) << i;
  }
}

TEST_P(ConvertKernelOf, AddsTheBiasBeforeTheOneRounding) {
  constexpr int64_t kRows = 3, kWidth = 21;
  std::vector<float> from, bias;
  for (int64_t i = 0; i < kRows * kWidth; ++i) from.push_back(1.0F + 0.001F * static_cast<float>(i));
  for (int64_t i = 0; i < kWidth; ++i) bias.push_back(0.003F * static_cast<float>(i) - 0.1F);
  std::vector<Bf16> to(from.size());
  convert_kernel(GetParam()).narrow(from.data(), bias.data(), to.data(), kRows, kWidth);
  for (size_t i = 0; i < to.size(); ++i) EXPECT_EQ(to[i].bits, rounded_to<Bf16>(from[i] + bias[i % kWidth]).bits) << i;
}

TEST_P(ConvertKernelOf, WideningIsExact) {
  std::vector<Bf16> from;
  for (uint32_t i = 0; i < kCount; ++i) from.push_back({static_cast<uint16_t>(i * 40503U)});
  std::vector<float> to(kCount + 1, 7.0F);
  convert_kernel(GetParam()).widen(from.data(), to.data(), kCount);
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(std::bit_cast<uint32_t>(to[i]), uint32_t{from[i].bits} << 16U) << i;
  EXPECT_EQ(to.back(), 7.0F);  // nothing is written behind the end
}

TEST_P(ConvertKernelOf, AddsAsOneNumberIs) {
  const std::vector<float> x = numbers(kCount);
  std::vector<Bf16> y;
  for (uint32_t i = 0; i < kCount; ++i) y.push_back({static_cast<uint16_t>((i + 3) * 40503U)});
  std::vector<float> to(kCount + 1, 7.0F);
  convert_kernel(GetParam()).add(x.data(), y.data(), to.data(), kCount);
  for (size_t i = 0; i < kCount; ++i) {
    const float right = x[i] + to_float(y[i]);
    if (std::isnan(right)) {
      EXPECT_TRUE(std::isnan(to[i])) << i;
    } else {
      EXPECT_EQ(std::bit_cast<uint32_t>(to[i]), std::bit_cast<uint32_t>(right)) << i;
    }
  }
  EXPECT_EQ(to.back(), 7.0F);
}

INSTANTIATE_TEST_SUITE_P(Sets, ConvertKernelOf,
                         ::testing::Values(InstructionSet::Portable, InstructionSet::Avx2, InstructionSet::Avx512),
                         [](const auto& set) { return std::string(name_of(set.param)); });

}  // namespace
}  // namespace welkin::ops
