// SPDX-License-Identifier: Apache-2.0
#include "data/sample/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "number_close.h"

namespace welkin::data::tests {
namespace {

using welkin::tests::within;

std::vector<int64_t> epoch_order(const Sampler& sampler, int64_t epoch) {
  std::vector<int64_t> order;
  for (int64_t position = 0; position < sampler.size(); ++position) order.push_back(sampler.at(epoch, position).index);
  return order;
}

TEST(SamplerTest, EveryEpochIsAPermutation) {
  for (const int64_t size : {1, 2, 3, 5, 16, 17, 255, 256, 257, 1000, 4097}) {
    const Sampler sampler(size, Order::Shuffled, 7);
    for (const int64_t epoch : {0, 1, 1000000}) {
      const auto order = epoch_order(sampler, epoch);
      const std::set<int64_t> seen(order.begin(), order.end());
      EXPECT_EQ(static_cast<int64_t>(seen.size()), size);
      EXPECT_EQ(*seen.begin(), 0);
      EXPECT_EQ(*seen.rbegin(), size - 1);
    }
  }
}

TEST(SamplerTest, DependsOnSeedAndEpochAndIsRepeatable) {
  const Sampler a(1000, Order::Shuffled, 1), b(1000, Order::Shuffled, 2);
  EXPECT_EQ(epoch_order(a, 3), epoch_order(a, 3));
  EXPECT_NE(epoch_order(a, 3), epoch_order(a, 4));
  EXPECT_NE(epoch_order(a, 3), epoch_order(b, 3));
}

// Position p of epoch e is uniform over the samples: chi-square over 600 epochs of 50 samples, for three positions.
TEST(SamplerTest, PositionsAreUniformOverEpochs) {
  constexpr int64_t kSize = 50, kEpochs = 3000;
  const Sampler sampler(kSize, Order::Shuffled, 11);
  for (const int64_t position : {0, 17, 49}) {
    std::vector<int> counts(kSize);
    for (int64_t epoch = 0; epoch < kEpochs; ++epoch) ++counts[static_cast<size_t>(sampler.at(epoch, position).index)];
    double chi = 0;
    const double expected = static_cast<double>(kEpochs) / kSize;
    for (const int count : counts) chi += (count - expected) * (count - expected) / expected;
    EXPECT_LT(std::abs(chi - (kSize - 1)), 6 * std::sqrt(2.0 * (kSize - 1))) << "position " << position;
  }
}

// Neighbours in the order are not neighbours in the data: the mean distance of a random permutation is (n + 1) / 3.
TEST(SamplerTest, NeighboursAreFarApart) {
  const Sampler sampler(10000, Order::Shuffled, 3);
  const auto order = epoch_order(sampler, 0);
  double distance = 0;
  for (size_t i = 1; i < order.size(); ++i) distance += std::abs(static_cast<double>(order[i] - order[i - 1]));
  // A distance has a deviation of n / sqrt(18); neighbouring distances share a point.
  EXPECT_TRUE(
      within(distance / 9999, 10001.0 / 3, {5 * std::sqrt(2.0) * 10000 / std::sqrt(18.0 * 9999), "five standard errors"}));
}

TEST(SamplerTest, SequentialDoesNotDependOnTheEpoch) {
  const Sampler sampler(10, Order::Sequential, 3);
  for (int64_t position = 0; position < 10; ++position) {
    EXPECT_EQ(sampler.at(0, position).index, position);
    EXPECT_EQ(sampler.at(0, position).draw, sampler.at(9, position).draw);
  }
}

TEST(SamplerTest, DrawsDifferBetweenEpochsAndPositions) {
  const Sampler sampler(100, Order::Shuffled, 3);
  std::set<uint64_t> draws;
  for (int64_t epoch = 0; epoch < 10; ++epoch) {
    for (int64_t position = 0; position < 100; ++position) draws.insert(sampler.at(epoch, position).draw);
  }
  EXPECT_EQ(draws.size(), 1000u);
}

}  // namespace
}  // namespace welkin::data::tests
