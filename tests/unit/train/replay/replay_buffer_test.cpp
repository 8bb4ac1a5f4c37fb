// SPDX-License-Identifier: Apache-2.0
// A replay buffer with a model that doubles its input: a state says how often it has been predicted, and what is known of its
// time is that of the data.
#include "train/replay/replay_buffer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "replay_days.h"

namespace welkin::train {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Steps of one rank that has the lanes [first, first + count).
class ReplayBufferTest : public ::testing::Test {
 protected:
  data::ReplayPlan plan() const { return plan_of(days_); }
  ReplayBuffer buffer(ReplayLanes lanes) const { return {days_, plan(), two_states(), lanes, {}, at::kCPU}; }
  data::Batch batch_at(int64_t step, const ReplayLanes& lanes) const { return train::batch_at(days_, step, lanes); }

  // The first value of the channel in each sample of a step.
  static std::vector<double> values(const data::Batch& batch, int64_t channel) {
    std::vector<double> found;
    for (int64_t i = 0; i < batch.input.size(0); ++i) found.push_back(batch.input[i][channel][0][0].item<double>());
    return found;
  }

  data::Batch step(ReplayBuffer& replay, int64_t number) const {
    data::Batch batch = batch_at(number, replay.lanes());
    replay.feed(batch);
    replay.keep(batch, batch.input.narrow(1, 3, 1) * 2);
    return batch;
  }

  Days days_;
};

TEST_F(ReplayBufferTest, StatesAreInputsOfTheSamplesThatFollow) {
  ReplayBuffer replay = buffer({0, kBatch});
  int most = 0;
  for (int64_t number = 0; number < kTrainedSteps; ++number) {
    const data::Batch batch = step(replay, number);
    const auto known = values(batch, 2), older = values(batch, 1), newest = values(batch, 3), older_known = values(batch, 0);
    for (int64_t i = 0; i < kBatch; ++i) {
      const auto at = static_cast<size_t>(i);
      const int64_t steps = plan().at(batch.epoch, batch.first_position + i).steps, index = batch.indices[at];
      const double begun = static_cast<double>(1 + index - steps);
      EXPECT_EQ(known[at], 1000 + static_cast<double>(index)) << "what is known of the time";
      EXPECT_EQ(older_known[at], 999 + static_cast<double>(index));
      EXPECT_EQ(newest[at], begun * std::pow(2, steps)) << "predicted " << steps << " times";
      EXPECT_EQ(older[at], steps == 0 ? begun - 1 : begun * std::pow(2, steps - 1));
      most = std::max(most, static_cast<int>(steps));
    }
  }
  EXPECT_EQ(most, kLongest - 1);
}

TEST_F(ReplayBufferTest, RanksHaveTheLanesOfOneProcess) {
  ReplayBuffer all = buffer({0, kBatch}), first = buffer({0, 1}), others = buffer({1, kBatch - 1});
  for (int64_t number = 0; number < kTrainedSteps; ++number) {
    const data::Batch whole = step(all, number), one = step(first, number), rest = step(others, number);
    EXPECT_TRUE(whole.input.equal(at::cat({one.input, rest.input}))) << number;
  }
}

TEST_F(ReplayBufferTest, WithoutItsStatesItTakesTheData) {
  ReplayBuffer replay = buffer({0, kBatch});
  for (int64_t number = 0; number < kTrainedSteps; ++number) step(replay, number);
  replay.clear();
  const data::Batch batch = batch_at(kTrainedSteps, replay.lanes());
  const at::Tensor truth = batch.input.clone();
  replay.feed(batch);
  EXPECT_TRUE(batch.input.equal(truth)) << "as of a run that is resumed from a checkpoint without them";
}

TEST_F(ReplayBufferTest, ARolloutThatIsNoNumberGoesOnFromTheTruth) {
  ReplayBuffer replay = buffer({0, kBatch});
  int from_truth = 0;
  for (int64_t number = 0; number < kTrainedSteps; ++number) {
    const data::Batch batch = batch_at(number, replay.lanes());
    replay.feed(batch);
    replay.keep(batch, at::full_like(batch.target, std::numeric_limits<double>::infinity()));
    const auto newest = values(batch, 3);
    for (int64_t i = 0; i < kBatch; ++i) {
      EXPECT_EQ(newest[static_cast<size_t>(i)], static_cast<double>(1 + batch.indices[static_cast<size_t>(i)]));
      from_truth += plan().at(batch.epoch, batch.first_position + i).steps > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(from_truth, kTrainedSteps) << "the target of the step before is the truth";
}

TEST_F(ReplayBufferTest, AnInputThatIsNeitherPredictedNorKnownIsRefused) {
  const Days unknown(std::vector<int64_t>{});
  EXPECT_THAT(([&] {
                ReplayBuffer(unknown, plan(), two_states(), {0, kBatch}, {}, at::kCPU);
              }),
              ThrowsMessage<ConfigError>(HasSubstr("the prediction is not the next input")));
}

}  // namespace
}  // namespace welkin::train
