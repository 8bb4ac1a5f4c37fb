// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/synthetic_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/philox.h"

namespace welkin::data {
namespace {

constexpr int64_t kFieldSamples = 24;
constexpr uint64_t kFieldSeed = 7;

SyntheticFields some_fields() {
  SampleSpec spec;
  spec.input.shape = {3, 40, 60}, spec.target.shape = {2, 40, 60};
  return {spec, kFieldSamples, kFieldSeed};
}

std::vector<float> read_sample(const SyntheticFields& fields, int64_t index) {
  std::vector<float> input(3 * 40 * 60), target(2 * 40 * 60);
  const Region whole{.begin = {0, 0}, .extent = {40, 60}};
  fields.read(fields.plan({index, 0}, whole), {input, target});
  input.insert(input.end(), target.begin(), target.end());
  return input;
}

TEST(SyntheticFieldsTest, AreAWindowOfTheNormalsOfTheSeed) {
  const SyntheticFields fields = some_fields();
  const uint64_t key = stream_key(kFieldSeed, "synthetic fields");
  constexpr uint64_t kPool = uint64_t{1} << 20;
  for (int64_t index = 0; index < kFieldSamples; ++index) {
    const std::vector<float> sample = read_sample(fields, index);
    const uint64_t place = philox(key, 1, static_cast<uint64_t>(index))[0];
    for (uint64_t i = 0; i < 3 * 40 * 60; i += 97) {
      const uint64_t at = (place + i) % kPool;
      const PhiloxBlock words = philox(key, 0, at / 2 * 2);
      EXPECT_EQ(sample[i], static_cast<float>(normal_pair(words[0], words[1])[at % 2])) << index << ", " << i;
    }
  }
}

TEST(SyntheticFieldsTest, AreTheSameForThreadsThatReadAtOnce) {
  const SyntheticFields alone = some_fields(), shared = some_fields();
  std::vector<std::vector<std::vector<float>>> found(4, std::vector<std::vector<float>>(kFieldSamples));
  {
    std::vector<std::jthread> threads;
    for (auto& of_thread : found) {
      threads.emplace_back([&] {
        for (int64_t index = 0; index < kFieldSamples; ++index)
          of_thread[static_cast<size_t>(index)] = read_sample(shared, index);
      });
    }
  }
  for (int64_t index = 0; index < kFieldSamples; ++index) {
    const std::vector<float> wanted = read_sample(alone, index);
    for (const auto& of_thread : found) EXPECT_EQ(of_thread[static_cast<size_t>(index)], wanted) << index;
  }
}

}  // namespace
}  // namespace welkin::data
