// SPDX-License-Identifier: Apache-2.0
// Who goes on in an elastic job, and when: every transition, without clocks and processes.
#include "launch/elastic/next_round.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/text.h"

namespace welkin::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = Decision::Kind;

ProcessId process(int64_t local, int64_t start = 0) { return {.node = 0, .local = local, .start = start}; }

// Four processes of one node that wait for the first round.
JobView four() {
  JobView job{.limits = {.least = 1, .most = 4}, .sizes = {4, 2, 1}, .members = {}, .slots = {}};
  for (int64_t local = 0; local < 4; ++local) job.slots.push_back({.slot = {.id = process(local)}, .is_ready = true});
  return job;
}

// The same in a round of all.
JobView four_at_work() {
  JobView job = four();
  job.round = 1;
  for (const SlotView& view : job.slots) job.members.push_back(view.slot.id);
  return job;
}

void lose(JobView& job, size_t slot, Slot::State state, int64_t code = 137) {
  job.slots[slot].slot.state = state;
  job.slots[slot].slot.code = code;
  job.slots[slot].slot.words = cat("rank ", slot, " was ended by signal 9 (Killed)");
  job.slots[slot].is_ready = false;
}

TEST(NextRound, TheFirstWaitsForAll) {
  JobView job = four();
  EXPECT_EQ(decide(job, {}).kind, Kind::Start);
  job.slots[2].is_ready = false;
  EXPECT_EQ(decide(job, {}).kind, Kind::Wait);
  job.waiting_s = 61;
  const Decision decision = decide(job, {});
  EXPECT_EQ(decision.kind, Kind::Start);
  EXPECT_THAT(decision.members, ElementsAre(process(0), process(1)));
}

TEST(NextRound, WhoeverComesAfterAllPlacesAreTakenWaits) {
  JobView job = four();
  job.limits.most = 3;
  job.sizes = {3};
  job.slots[1].is_ready = false;
  const Decision decision = decide(job, {});
  EXPECT_THAT(decision.members, ElementsAre(process(0), process(2), process(3)));
  job.round = 1;
  job.members = decision.members;
  EXPECT_THAT(waiting_of(job), IsEmpty());
  job.slots[1].is_ready = true;
  EXPECT_EQ(decide(job, {}).kind, Kind::Wait);
  EXPECT_THAT(waiting_of(job), ElementsAre(process(1)));
  lose(job, 2, Slot::State::Gone);
  EXPECT_THAT(decide(job, {}).members, ElementsAre(process(0), process(3), process(1)));
}

TEST(NextRound, NobodyKnowsASizeYet) {
  JobView job = four();
  job.sizes.clear();
  for (SlotView& view : job.slots) view.is_ready = false;
  EXPECT_EQ(decide(job, {}).kind, Kind::Wait);
}

TEST(NextRound, GoesOnWithTheLargestSizeThatIsLeft) {
  JobView job = four_at_work();
  EXPECT_EQ(decide(job, {}).kind, Kind::Wait);
  lose(job, 1, Slot::State::Waiting);
  const Decision decision = decide(job, {});
  EXPECT_EQ(decision.kind, Kind::Start);
  EXPECT_THAT(decision.members, ElementsAre(process(0), process(2)));
  EXPECT_EQ(decision.why, "rank 1 was ended by signal 9 (Killed)");
}

TEST(NextRound, ALostFirstRankHasASuccessor) {
  JobView job = four_at_work();
  lose(job, 0, Slot::State::Gone);
  EXPECT_THAT(decide(job, {}).members, ElementsAre(process(1), process(2)));
}

TEST(NextRound, WhoComesBackIsRequestedAndThenIn) {
  JobView job = four_at_work();
  job.round = 2;
  job.members = {process(0), process(2)};
  lose(job, 1, Slot::State::Waiting);
  EXPECT_EQ(decide(job, {}).kind, Kind::Wait);  // three can do no more than two
  job.slots[1] = {.slot = {.id = process(1, 1)}, .is_ready = false};
  EXPECT_EQ(decide(job, {}).kind, Kind::Wait);  // it loads its libraries
  job.slots[1].is_ready = true;
  EXPECT_EQ(decide(job, {}).kind, Kind::Request);
  job.slots[0].has_left = true;
  EXPECT_EQ(decide(job, {}).kind, Kind::Close);
  job.is_closing = true;
  EXPECT_EQ(decide(job, {}).kind, Kind::Wait);
  job.slots[2].has_left = true;
  const Decision decision = decide(job, {});
  EXPECT_EQ(decision.kind, Kind::Start);
  EXPECT_THAT(decision.members, ElementsAre(process(0), process(2), process(1, 1), process(3)));
}

TEST(NextRound, ARankThatDoesNotAnswerIsEnded) {
  JobView job = four_at_work();
  job.is_closing = true;
  for (SlotView& view : job.slots) view.has_left = view.slot.id.local != 3;
  EXPECT_THAT(decide(job, {}).kill, IsEmpty());
  job.closing_s = 6;
  EXPECT_THAT(decide(job, {}).kill, ElementsAre(process(3)));
  job.slots[3].is_seen = true;  // it computes
  EXPECT_THAT(decide(job, {}).kill, IsEmpty());
}

TEST(NextRound, AProcessThatWasStartedAgainIsNoMember) {
  JobView job = four_at_work();
  job.slots[1] = {.slot = {.id = process(1, 1), .words = "rank 1 ended with exit code 4"}, .is_ready = false};
  const Decision decision = decide(job, {});
  EXPECT_EQ(decision.kind, Kind::Start);
  EXPECT_THAT(decision.members, ElementsAre(process(0), process(2)));
}

TEST(NextRound, WithTooFewItWaitsForWhoMayComeAndEndsForNobody) {
  JobView job = four_at_work();
  job.limits.least = 4;
  lose(job, 1, Slot::State::Waiting);
  EXPECT_EQ(decide(job, {}).kind, Kind::Close);
  job.is_closing = true;
  EXPECT_EQ(decide(job, {}).kind, Kind::Wait);
  lose(job, 1, Slot::State::Gone);
  const Decision decision = decide(job, {});
  EXPECT_EQ(decision.kind, Kind::End);
  EXPECT_EQ(decision.code, 137);
  EXPECT_THAT(decision.why, HasSubstr("rank 1 was ended by signal 9 (Killed); too few ranks are left: left=3, elastic=4:4, "
                                      "sizes with which this run can go on=[1, 2, 4]. The newest checkpoint is whole"));
}

TEST(NextRound, BeforeTheFirstRoundThereIsNothingToContinueFrom) {
  JobView job = four();
  job.sizes = {};
  for (size_t slot = 0; slot < 4; ++slot) lose(job, slot, Slot::State::Gone, 143);
  const Decision decision = decide(job, {});
  EXPECT_EQ(decision.kind, Kind::End);
  EXPECT_THAT(decision.why, HasSubstr("too few ranks are left: left=0, elastic=1:4. No step was done: start the job again"));
}

TEST(NextRound, AnErrorOfAllIsNotTriedAgain) {
  JobView job = four_at_work();
  for (size_t slot = 0; slot < 4; ++slot) lose(job, slot, Slot::State::Waiting, 3);
  EXPECT_EQ(decide(job, {}).kind, Kind::End);
  EXPECT_EQ(decide(job, {}).code, 3);
  job.slots[2].slot.code = 4;  // its partners went away
  EXPECT_EQ(decide(job, {}).kind, Kind::Close);
}

TEST(NextRound, AWrongConfigurationAndTheEndOfTheRunEndTheJob) {
  JobView job = four();
  job.slots[1].slot.is_fatal = true;
  job.slots[1].slot.code = 2;
  EXPECT_EQ(decide(job, {}).kind, Kind::End);
  EXPECT_EQ(decide(job, {}).code, 2);
  job = four_at_work();
  lose(job, 2, Slot::State::Done, 0);
  EXPECT_EQ(decide(job, {}).kind, Kind::End);
  EXPECT_EQ(decide(job, {}).code, 0);
}

TEST(Rounds, AreTextsAndBack) {
  const Round round{.number = 3, .has_begun = true, .note = "rank 1 is lost", .members = {process(0), process(2, 5)}};
  const auto read = parse_round(3, text_of(round));
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->has_begun);
  EXPECT_EQ(read->note, round.note);
  EXPECT_EQ(read->members, round.members);
  EXPECT_EQ(read->rank_of(process(2, 5)), 1);
  EXPECT_FALSE(read->rank_of(process(2, 4)));
  const Slot slot{.id = process(1, 2), .state = Slot::State::Waiting, .code = 139, .is_fatal = true, .words = "it ended"};
  const auto slot_read = parse_slot(text_of(slot));
  ASSERT_TRUE(slot_read);
  EXPECT_EQ(text_of(*slot_read), text_of(slot));
  const auto now = parse_now(now_text(7, RoundState::Requested));
  ASSERT_TRUE(now);
  EXPECT_EQ(now->number, 7);
  EXPECT_EQ(now->state, RoundState::Requested);
}

TEST(Rounds, WhatIsNoTextOfThemIsNothing) {
  for (const char* text :
       {"", "begun", "begun\nnote", "begun\nnote\n", "begun\nnote\n0.1", "begun\nnote\n0.1.x", "old\nnote\n0.1.2"}) {
    EXPECT_FALSE(parse_round(1, text)) << text;
  }
  for (const char* text : {"", "0.1.2", "0.1.2 running", "0.1 running 0 0 x", "0.1.2 asleep 0 0 x"})
    EXPECT_FALSE(parse_slot(text)) << text;
  for (const char* text : {"", "7", "7 ajar", "x open"}) EXPECT_FALSE(parse_now(text)) << text;
}

TEST(Rounds, LimitsAreChecked) {
  EXPECT_EQ(parse_limits("2:4").most, 4);
  const auto error_of = [](const char* text) -> std::string {
    try {
      parse_limits(text);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(error_of("4"), HasSubstr("not MIN:MAX: elastic=4. For instance --elastic 2:4"));
  EXPECT_THAT(error_of("2:4x"), HasSubstr("not MIN:MAX"));
  EXPECT_THAT(error_of("0:4"), HasSubstr("a run needs a rank at least: elastic=0:4"));
  EXPECT_THAT(error_of("4:2"), HasSubstr("MIN is above MAX: elastic=4:2. Did you mean 2:4."));
}

}  // namespace
}  // namespace welkin::launch
