// SPDX-License-Identifier: Apache-2.0
#include "plan/failure_sheet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace welkin::plan {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// 6000 hours for a node are 0.83 for a job of 7200: M = 3000 s. With d = 3.75 s: Young 150 s, and Daly 150 (1 + 0.025 / 3 +
// 0.000625 / 9) - 3.75 = 147.5 s.
TEST(FailureSheet, SaysIntervalsAndGoodput) {
  FailureQuestion question{.mtbf_hours = 6000, .nodes = 7200, .save_seconds = 3.75, .restart_seconds = 60};
  const std::string text = figures_text({failure_sheet(question)});
  EXPECT_THAT(text, HasSubstr("failures of 7200 nodes"));
  EXPECT_THAT(text, ContainsRegex("a failure every +0\\.83 +hours +a node fails every 6000 hours"));
  EXPECT_THAT(text, ContainsRegex("interval by Young +150\\.0 +s"));
  EXPECT_THAT(text, ContainsRegex("interval by Daly +147\\.5 +s"));
  EXPECT_THAT(text, ContainsRegex("goodput +93\\.20 +%"));
  EXPECT_THAT(text, ContainsRegex("spent on checkpoints +2\\.37 +%"));
  EXPECT_THAT(text, ContainsRegex("lost by failures +4\\.43 +%"));
  EXPECT_THAT(text, Not(HasSubstr("interval in steps")));
  question.step_seconds = 0.5;
  EXPECT_THAT(figures_text({failure_sheet(question)}), ContainsRegex("interval in steps +295 +steps +0\\.5 s each"));
}

TEST(FailureSheet, CheckpointsBesideTrainingDoNotOverlap) {
  const FailureQuestion question{.mtbf_hours = 1, .save_seconds = 0.1, .write_seconds = 600, .step_seconds = 1};
  EXPECT_THAT(figures_text({failure_sheet(question)}), ContainsRegex("interval in steps +600 +steps"));
}

}  // namespace
}  // namespace welkin::plan
