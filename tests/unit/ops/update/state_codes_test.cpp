// SPDX-License-Identifier: Apache-2.0
// The 8-bit codes against the bits that the paper describes, and the search for the nearest against all 256.
#include "ops/arithmetic/state_codes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "core/philox.h"
#include "number_close.h"
#include "on_instruction_set.h"
#include "ops/update/lean_update.h"

namespace welkin::ops {
namespace {

// A dynamic tree of so many bits, arXiv:2110.02861, figure 2: leading zeros count decades, a one ends them, and the bits behind
// it are a number of equal steps from 0.1 to 1, whose middle is meant.
double tree_value(int bits, int pattern) {
  int zeros = 0;
  while ((pattern >> (bits - 1 - zeros) & 1) == 0) ++zeros;
  const int fraction_bits = bits - 1 - zeros, steps = 1 << fraction_bits;
  return std::pow(10.0, -zeros) * (0.1 + 0.9 * ((pattern & (steps - 1)) + 0.5) / steps);
}

// Zero has one code, and the second zero's (signed) or the least number's (unsigned) is 1.
std::vector<double> tree_values(bool has_sign) {
  std::multiset<double> values{0, 1};
  for (int pattern = 1; pattern < 128 && has_sign; ++pattern) {
    for (const double sign : {-1, 1}) values.insert(sign * tree_value(7, pattern));
  }
  for (int pattern = 2; pattern < 256 && !has_sign; ++pattern) values.insert(tree_value(8, pattern));
  return {values.begin(), values.end()};
}

TEST(StateCodes, AreDynamicTrees) {
  for (const bool has_sign : {true, false}) {
    const CodeTable& table = has_sign ? signed_codes() : unsigned_codes();
    const std::vector<double> wanted = tree_values(has_sign);
    ASSERT_EQ(wanted.size(), size_t{kNumCodes});
    for (size_t code = 0; code < wanted.size(); ++code) {
      EXPECT_TRUE(tests::rounds_to(table.value[code], wanted[code], std::abs(wanted[code]), kFp32, 2)) << code;
    }
    EXPECT_EQ(table.value[table.zero], 0);
  }
}

size_t nearest_of_all(const CodeTable& table, float value) {
  size_t best = 0;
  for (size_t code = 1; code < kNumCodes; ++code) {
    if (std::abs(table.value[code] - value) < std::abs(table.value[best] - value)) best = code;
  }
  return best;
}

// Gradients of every size down to nothing, of both signs.
std::vector<float> gradients(size_t count) {
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) {
    const PhiloxBlock words = philox(stream_key(1, "codes"), 0, i);
    values.push_back((words[0] % 2 == 0 ? 1.0F : -1.0F) * std::pow(10.0F, -8 * unit_float(words[1])) * unit_float(words[2]));
  }
  return values;
}

class Coded : public OnInstructionSet {};

// An average that is the gradient itself shows what a block is stored as.
TEST_P(Coded, ABlockIsItsLargestMagnitudeAndTheNearestCodes) {
  const AdamRule rule{.average_share = 1, .square_keep = 0, .square_share = 1, .step = 0};
  const std::vector<float> gradient = gradients(4 * kCodedBlock + 37);
  std::vector<float> value(gradient.size()), scale(5), square_scale(5);
  std::vector<uint8_t> codes(gradient.size()), square_codes(gradient.size());
  fused_coded_adam({{.count = static_cast<int64_t>(gradient.size()),
                     .value = value.data(),
                     .gradient = gradient.data(),
                     .average = codes.data(),
                     .average_scale = scale.data(),
                     .square = square_codes.data(),
                     .square_scale = square_scale.data()}},
                   rule);
  size_t others = 0;
  for (size_t block = 0; block < scale.size(); ++block) {
    const auto begin = gradient.begin() + static_cast<int64_t>(block * kCodedBlock);
    const auto end = std::min(begin + kCodedBlock, gradient.end());
    const auto by_size = [](float a, float b) { return std::abs(a) < std::abs(b); };
    const float largest = std::abs(*std::max_element(begin, end, by_size));
    EXPECT_EQ(scale[block], largest);
    for (auto g = begin; g != end; ++g) {
      const auto i = static_cast<size_t>(g - gradient.begin());
      const float scaled = *g / largest;
      const float error = std::abs(signed_codes().value[codes[i]] - scaled);
      const float least = std::abs(signed_codes().value[nearest_of_all(signed_codes(), scaled)] - scaled);
      EXPECT_LE(error, least + 2 * std::abs(scaled) * static_cast<float>(kFp32.roundoff)) << i;
      others += square_codes[i] != nearest_of_all(unsigned_codes(), *g * *g / square_scale[block]) ? 1 : 0;
    }
  }
  EXPECT_LE(others, 2U) << "halfway between two codes";
}

TEST_P(Coded, ZerosStayZeros) {
  std::vector<float> value(300, 2), gradient(300), scale(2), square_scale(2);
  std::vector<uint8_t> codes(300), square_codes(300);
  const AdamRule rule{.average_share = 0.1F, .square_keep = 0.9F, .square_share = 0.1F, .step = 0.1F, .epsilon = 1e-8F};
  fused_coded_adam({{300, value.data(), gradient.data(), codes.data(), scale.data(), square_codes.data(), square_scale.data()}},
                   rule);
  EXPECT_EQ(value, std::vector<float>(300, 2));
  EXPECT_EQ(scale, std::vector<float>(2, 0));
  EXPECT_EQ(codes, std::vector<uint8_t>(300, static_cast<uint8_t>(signed_codes().zero)));
}

// They looked for their cell beyond the table.
TEST_P(Coded, WhatIsNotFiniteCountsAsOne) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> gradient(300, 1), value(300), scale(2), square_scale(2);
  gradient[0] = nan;
  gradient[1] = -nan;
  gradient[299] = inf;
  std::vector<uint8_t> codes(300), square_codes(300);
  const AdamRule rule{.average_share = 1, .square_keep = 0, .square_share = 1, .step = 0};
  fused_coded_adam({{300, value.data(), gradient.data(), codes.data(), scale.data(), square_codes.data(), square_scale.data()}},
                   rule);
  EXPECT_EQ(scale, (std::vector<float>{1, inf}));
  const std::set<int> sizes{codes[0], codes[1], codes[299]}, largest{kNumCodes - 1, 0};
  EXPECT_TRUE(std::ranges::includes(largest, sizes));
  EXPECT_EQ(codes[2], kNumCodes - 1);
  EXPECT_EQ(codes[298], signed_codes().zero) << "beside what is infinite";
}

// The words of core/philox.h, added below what bfloat16 keeps.
TEST_P(Coded, Bf16AveragesAreRoundedByTheWordsOfTheirPlace) {
  const AdamRule rule{.average_share = 1, .square_keep = 0, .square_share = 1, .step = 0};
  const std::vector<float> gradient = gradients(16384 + 203);
  std::vector<float> value(gradient.size());
  std::vector<uint16_t> average(gradient.size()), square(gradient.size());
  fused_bf16_adam({{static_cast<int64_t>(gradient.size()), value.data(), gradient.data(), average.data(), square.data(), 77}},
                  rule, 5);
  const auto rounded = [](float x, uint32_t dice) {
    uint32_t bits = 0;
    static_assert(sizeof bits == sizeof x);
    std::copy_n(reinterpret_cast<const unsigned char*>(&x), sizeof x, reinterpret_cast<unsigned char*>(&bits));
    return static_cast<uint16_t>((bits + dice) >> 16);
  };
  for (size_t i = 0; i < gradient.size(); ++i) {
    const uint32_t word = philox(77, 5, i / 4)[i % 4];
    ASSERT_EQ(average[i], rounded(gradient[i], word & 0xffff)) << i;
    ASSERT_EQ(square[i], rounded(gradient[i] * gradient[i], word >> 16)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, Coded, ::testing::Values(InstructionSet::Portable, InstructionSet::Avx2, InstructionSet::Avx512),
                         [](const auto& set) { return std::string(name_of(set.param)); });

}  // namespace
}  // namespace welkin::ops
