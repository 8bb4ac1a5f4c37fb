// SPDX-License-Identifier: Apache-2.0
// What ranks send each other follows from the table.
#include "parallel/pipeline/schedule_messages.h"

#include <gtest/gtest.h>

namespace welkin::parallel {
namespace {

using config::PipelineSchedule;

TEST(StageMessages, StandInTheOrderOfTheSendersPasses) {
  const Schedule schedule = make_schedule(PipelineSchedule::OneForwardOneBackward, {.ranks = 2, .micros = 2});
  const auto forward = messages_between(schedule, 0, 1);
  ASSERT_EQ(forward.size(), 2U);
  EXPECT_EQ(forward[0].message, (StageMessage{0, 0, false}));
  EXPECT_EQ(forward[1].message, (StageMessage{0, 1, false}));
  EXPECT_EQ(forward[1].made_by, 1U);
  EXPECT_EQ(forward[1].used_by, 2U);  // behind forward and backward pass of the first
  const auto back = messages_between(schedule, 1, 0);
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[0].message, (StageMessage{0, 0, true}));
  EXPECT_EQ(back[0].used_by, 2U);
}

// Between two ranks activations go both ways, and so do gradients.
TEST(StageMessages, OfInterleavedStagesGoRound) {
  const Schedule schedule = make_schedule(PipelineSchedule::Interleaved, {.ranks = 2, .micros = 2, .chunks = 2});
  EXPECT_EQ(messages_between(schedule, 0, 1).size(), 6U);  // activations of stages 0 and 2, gradients of boundary 1
  EXPECT_EQ(messages_between(schedule, 1, 0).size(), 6U);
}

// The last rank sends the first one the input of the next step, and gets the gradient of that.
TEST(StageMessages, OfSeveralStepsCloseTheRing) {
  const Schedule schedule = make_schedule(PipelineSchedule::GPipe, {.ranks = 3, .micros = 1, .chunks = 1, .leads = 2});
  const auto fed = messages_between(schedule, 2, 0);
  ASSERT_EQ(fed.size(), 1U);
  EXPECT_EQ(fed[0].message, (StageMessage{2, 0, false}));
  EXPECT_EQ(fed[0].used_by, 1U);
  const auto back = messages_between(schedule, 0, 2);
  ASSERT_EQ(back.size(), 1U);
  EXPECT_EQ(back[0].message, (StageMessage{2, 0, true}));
}

// Without a gradient nothing comes back, and a step before the last has no backward passes.
TEST(StageMessages, OfTheLastStepAloneGoBackWithinIt) {
  const Schedule schedule =
      make_schedule(PipelineSchedule::GPipe, {.ranks = 2, .micros = 1, .chunks = 1, .leads = 3, .only_last = true});
  EXPECT_EQ(messages_between(schedule, 0, 1).size(), 3U);
  const auto from_last = messages_between(schedule, 1, 0);
  ASSERT_EQ(from_last.size(), 3U);
  EXPECT_EQ(from_last[2].message, (StageMessage{4, 0, true}));
}

TEST(StageMessages, GoToNeighboursAlone) {
  const Schedule schedule = make_schedule(PipelineSchedule::GPipe, {.ranks = 4, .micros = 3});
  EXPECT_TRUE(messages_between(schedule, 0, 2).empty());
  EXPECT_TRUE(messages_between(schedule, 3, 0).empty());
  EXPECT_EQ(messages_between(schedule, 2, 1).size(), 3U);
}

}  // namespace
}  // namespace welkin::parallel
