// SPDX-License-Identifier: Apache-2.0
// Which states of a replay buffer are used when: rollouts go on from visit to visit, and all lengths are trained at once.
#include "data/sample/replay_plan.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <utility>

namespace welkin::data {
namespace {

constexpr int64_t kBatch = 3, kSlots = 4, kLongest = 5, kSamples = 62, kStepsPerEpoch = 20;

// Two files of 31 samples each: the last of a file is followed by none.
class TwoFiles : public Dataset {
 public:
  int64_t size() const override { return kSamples; }
  const SampleSpec& spec() const override { return spec_; }
  SamplePlan plan(SampleKey key, const Region& wanted) const override { return {.index = key.index, .region = wanted}; }
  void read(const SamplePlan& /*plan*/, SampleView /*out*/) const override {}
  std::optional<int64_t> following(int64_t index) const override {
    return index % 31 < 30 ? std::optional(index + 1) : std::nullopt;
  }

 private:
  SampleSpec spec_;
};

class ReplayPlanTest : public ::testing::Test {
 protected:
  ReplayChoice at(int64_t step, int64_t lane) const {
    return plan_.at(step / kStepsPerEpoch, step % kStepsPerEpoch * kBatch + lane);
  }

  TwoFiles dataset_;
  Sampler sampler_{kSamples, Order::Shuffled, 7};
  ReplayPlan plan_{
      dataset_, sampler_, {.batch = kBatch, .slots = kSlots, .longest = kLongest, .steps_per_epoch = kStepsPerEpoch, .seed = 7}};
};

TEST_F(ReplayPlanTest, RolloutsGoOnFromVisitToVisit) {
  for (int64_t lane = 0; lane < kBatch; ++lane) {
    std::map<int64_t, ReplayChoice> held;
    for (int64_t cycle = 0; cycle < 50; ++cycle) {
      std::set<int64_t> visited;
      for (int64_t step = cycle * kSlots; step < (cycle + 1) * kSlots; ++step) {
        const ReplayChoice now = at(step, lane);
        visited.insert(now.slot);
        const auto before = held.find(now.slot);
        if (now.steps > 0) {
          ASSERT_NE(before, held.end());
          EXPECT_EQ(now.steps, before->second.steps + 1);
          EXPECT_EQ(now.key.index, dataset_.following(before->second.key.index)) << "the data of the state's time";
          EXPECT_LT(now.steps, kLongest);
        } else {
          const SampleKey begun = sampler_.at(step / kStepsPerEpoch, step % kStepsPerEpoch * kBatch + lane);
          EXPECT_EQ(now.key.index, begun.index) << "a rollout begins with the sample of its place";
          EXPECT_EQ(now.key.draw, begun.draw);
        }
        held[now.slot] = now;
      }
      EXPECT_EQ(visited.size(), static_cast<size_t>(kSlots)) << "each slot once in a cycle";
    }
  }
}

// A fifth of the samples or somewhat more is of the data, and each length is trained about as often.
TEST_F(ReplayPlanTest, AllLengthsAreTrainedAtOnce) {
  std::array<int, kLongest> count{};
  std::set<std::pair<int64_t, int64_t>> orders;
  constexpr int64_t kSteps = 400, kWarm = kSlots * kLongest;
  for (int64_t step = kWarm; step < kWarm + kSteps; ++step) {
    for (int64_t lane = 0; lane < kBatch; ++lane) ++count.at(static_cast<size_t>(at(step, lane).steps));
    if (step % kSlots == 0) orders.emplace(at(step, 0).slot, at(step, 1).slot);
  }
  for (size_t steps = 0; steps < kLongest; ++steps) {
    EXPECT_GT(count.at(steps), kSteps * kBatch / kLongest * 7 / 10) << steps;
    if (steps == 0) continue;
    EXPECT_LE(count.at(steps), count.at(steps - 1) + kSlots * kBatch) << "files end, and the window cuts rollouts";
  }
  EXPECT_GT(orders.size(), 4U) << "the order turns, for each lane in its own way";
}

TEST_F(ReplayPlanTest, ASamplerTakesItsChoice) {
  const Sampler chosen = sampler_.choosing([this](int64_t epoch, int64_t position) { return plan_.at(epoch, position).key; });
  EXPECT_EQ(chosen.size(), sampler_.size());
  for (int64_t position = 0; position < 60; ++position) {
    EXPECT_EQ(chosen.at(3, position).index, plan_.at(3, position).key.index);
  }
}

}  // namespace
}  // namespace welkin::data
