// SPDX-License-Identifier: Apache-2.0
// The interval that a run chooses: from what it measures, kept for the process after it, equal on all ranks.
#include "train/monitor/interval_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <vector>

#include "core/file.h"
#include "number_close.h"
#include "parallel/comm/world.h"
#include "scratch_folder.h"
#include "train/monitor/agreed_interval.h"

namespace welkin::train {
namespace {

using ::testing::HasSubstr;
using tests::close;

TEST(IntervalChoice, SavesEarlyToMeasure) {
  IntervalChoice choice(3600);
  EXPECT_EQ(choice.steps(), IntervalChoice::kFirstSteps);
  EXPECT_EQ(choice.goodput(), 0);
  EXPECT_EQ(choice.news(), "");
  choice.add({.restart_s = 20});
  EXPECT_EQ(choice.steps(), IntervalChoice::kFirstSteps);
}

// Daly for d = 2 s and M = 100 s: 18.689 s, which are 37 steps of half a second.
TEST(IntervalChoice, FollowsDaly) {
  IntervalChoice choice(100);
  choice.add({.step_s = 0.5, .held_s = 2, .written_s = 2, .restart_s = 1});
  EXPECT_EQ(choice.steps(), 37);
  const FailureCosts costs{.mtbf_s = 100, .held_s = 2, .written_s = 2, .restart_s = 1};
  EXPECT_EQ(choice.goodput(), goodput(costs, 18.5));
  EXPECT_EQ(choice.news(),
            "Checkpoint interval: 37 steps (19 s). A checkpoint holds training for 2 s, a failure comes every 100 s, expected "
            "goodput 80.5 %");
  EXPECT_EQ(choice.news(), "");
}

TEST(IntervalChoice, LeavesTimeToWrite) {
  IntervalChoice choice(100);
  choice.add({.step_s = 0.5, .held_s = 0.1, .written_s = 30.1});
  EXPECT_EQ(choice.steps(), 60);
  choice.add({.step_s = 1e9});
  EXPECT_EQ(choice.steps(), 1);
}

TEST(IntervalChoice, LaterMeasurementsCountMore) {
  IntervalChoice choice(100, {.step_s = 1, .held_s = 1});
  choice.add({.step_s = 2});
  choice.add({.step_s = 2});
  EXPECT_TRUE(close(choice.times().step_s, 2 - 0.7 * 0.7, kFp64, 8));
  EXPECT_EQ(choice.times().held_s, 1);
  EXPECT_THAT(choice.news(), HasSubstr("Checkpoint interval: "));
}

TEST(MeasuredTimes, AreReadBack) {
  const ScratchFolder folder;
  EXPECT_FALSE(read_times(folder / "none"));
  write_times(folder / "times.json", {.step_s = 0.1, .held_s = 0.25, .written_s = 3, .restart_s = 7});
  const auto times = read_times(folder / "times.json");
  ASSERT_TRUE(times);
  EXPECT_EQ(times->step_s, 0.1);
  EXPECT_EQ(times->held_s, 0.25);
  EXPECT_EQ(times->written_s, 3);
  EXPECT_EQ(times->restart_s, 7);
}

TEST(MeasuredTimes, AreMeasuredAnewWhereTheFileIsDamaged) {
  const ScratchFolder folder;
  const auto read = [&](const std::string& text) {
    std::ofstream(folder / "times.json") << text;
    return read_times(folder / "times.json");
  };
  for (const char* text :
       {"", "[]", "{", R"({"step_s": 1})", R"({"step_s": "1", "held_s": 1, "written_s": 1, "restart_s": 1})"}) {
    EXPECT_FALSE(read(text)) << text;
  }
  const auto negative = read(R"({"step_s": -1, "held_s": 1e300, "written_s": 0, "restart_s": 1})");
  ASSERT_TRUE(negative);
  EXPECT_EQ(negative->step_s, 0);
  IntervalChoice choice(1, *negative);
  EXPECT_EQ(choice.steps(), IntervalChoice::kFirstSteps);
  choice.add({.step_s = 1e-9});
  EXPECT_GE(choice.steps(), 1);
}

TEST(AgreedInterval, KeepsWhatItMeasured) {
  const ScratchFolder folder;
  const parallel::World world;  // one process
  std::vector<std::string> said;
  const auto options = [&](bool resumed) {
    return AgreedInterval::Options{
        .mtbf_s = 100, .file = folder / "times.json", .resumed = resumed, .say = [&](const std::string& line) {
          said.push_back(line);
        }};
  };
  AgreedInterval first(world.world_group(), options(true));
  EXPECT_EQ(first.steps(), IntervalChoice::kFirstSteps);
  first.step_done(1);
  first.step_done(2);
  first.saved(10, 1e-9, 2e-9);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], HasSubstr("Checkpoint interval: "));
  EXPECT_GT(first.goodput(), 0);
  EXPECT_GT(read_times(folder / "times.json")->step_s, 0);
  const AgreedInterval resumed(world.world_group(), options(true));
  EXPECT_EQ(resumed.steps(), first.steps());
  EXPECT_EQ(said.size(), 2u);
  const AgreedInterval anew(world.world_group(), options(false));
  EXPECT_EQ(anew.steps(), IntervalChoice::kFirstSteps);
}

}  // namespace
}  // namespace welkin::train
