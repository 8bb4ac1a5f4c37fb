// SPDX-License-Identifier: Apache-2.0
// Bit by bit against the C library's functions, on every instruction set that the machine has.
#include "ops/random/normal_stream.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "core/philox.h"
#include "on_instruction_set.h"
#include "ops/cpu/elementwise/normal_kernel.h"

namespace welkin::ops {
namespace {

class NormalStream : public OnInstructionSet {};

float normal_of_library(uint64_t key, uint64_t i, double scale) {
  const PhiloxBlock words = philox(key, 0, i / 4);
  const auto pair = welkin::normal_pair(words[i % 4 / 2 * 2], words[i % 4 / 2 * 2 + 1]);
  return static_cast<float>(scale * pair[i % 2]);
}

TEST_P(NormalStream, GivesTheBitsOfTheLibrary) {
  constexpr int64_t kCount = 400'003;
  std::vector<float> got(kCount);
  for (const double scale : {1.0, 0.02, 3e-37}) {  // the last: into the least floats
    for (const int64_t first : {int64_t{0}, int64_t{7}, int64_t{1} << 35}) {
      fill_normals(77, first, kCount, scale, got.data());
      int64_t different = 0;
      for (int64_t i = 0; i < kCount; ++i) {
        const float wanted = normal_of_library(77, static_cast<uint64_t>(first + i), scale);
        different += std::memcmp(&wanted, &got[static_cast<size_t>(i)], sizeof(float)) != 0 ? 1 : 0;
      }
      EXPECT_EQ(different, 0) << "scale " << scale << ", from " << first;
    }
  }
}

// A doubt is one element in four million, and all below the least normal float.
TEST_P(NormalStream, DoubtsFew) {
  std::vector<float> out(64);
  std::vector<int32_t> doubtful(64);
  int64_t doubts = 0;
  for (uint64_t group = 0; group < 20'000; ++group) {
    doubts += normal_kernel(instruction_set()).normals(5, group * 16, 1.0, out.data(), doubtful.data());
  }
  EXPECT_LT(doubts, 5);
  EXPECT_EQ(normal_kernel(instruction_set()).normals(5, 0, 1e-40, out.data(), doubtful.data()), 64);
}

INSTANTIATE_TEST_SUITE_P(Sets, NormalStream,
                         ::testing::Values(InstructionSet::Portable, InstructionSet::Avx2, InstructionSet::Avx512),
                         [](const auto& set) { return std::string(name_of(set.param)); });

}  // namespace
}  // namespace welkin::ops
