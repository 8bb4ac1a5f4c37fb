// SPDX-License-Identifier: Apache-2.0
#include "train/monitor/lr_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "number_close.h"

namespace welkin::train {
namespace {

using ::testing::HasSubstr;

std::string range_error(const std::string& text) {
  try {
    parse_lr_range(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

// A loss that stands, falls around `knee`, and grows from `end` on.
double loss_at(double rate, double knee, double end) {
  return 1 - 0.8 / (1 + knee / rate) + (rate > end ? 10 * std::log(rate / end) : 0);
}

TEST(LrRange, ParsesItsRange) {
  const LrRangeOptions options = parse_lr_range("high=1,steps=20");
  EXPECT_EQ(options.low, 1e-7);
  EXPECT_EQ(options.high, 1);
  EXPECT_EQ(options.steps, 20);
  EXPECT_EQ(parse_lr_range("").steps, 100);
  EXPECT_EQ(range_error("steps=5"),
            "[command line] the test has 10 to 1000000 steps: --find_lr=steps=5. Write for instance "
            "--find_lr=low=1e-7,high=10,steps=100.");
  EXPECT_THAT(range_error("low=0"), HasSubstr("the rates must be positive and rise"));
  EXPECT_THAT(range_error("low=1,high=0.1"), HasSubstr("the rates must be positive and rise"));
  EXPECT_THAT(range_error("high=nan"), HasSubstr("the rates must be positive and rise"));
  for (const char* text : {"lo=1", "steps=20x", "steps", "steps=", "100"}) {
    EXPECT_THAT(range_error(text), HasSubstr("this is no range of rates: --find_lr=")) << text;
  }
}

TEST(LrRange, RisesExponentially) {
  const LrSchedulePtr schedule = rising_schedule({.low = 1e-4, .high = 1, .steps = 5});
  for (int64_t i = 0; i < 5; ++i)
    EXPECT_TRUE(tests::close(schedule->rate(i), std::pow(10.0, -4.0 + static_cast<double>(i)), kFp64, 16));
}

TEST(LrRange, EndsWhereTheLossHasGrownFourfold) {
  LrRange range;
  const LrSchedulePtr schedule = rising_schedule({.low = 1e-7, .high = 10, .steps = 100});
  int64_t steps = 0;
  while (steps < 100 && range.add(schedule->rate(steps), loss_at(schedule->rate(steps), 1e-3, 0.1))) ++steps;
  EXPECT_LT(steps, 99);
  EXPECT_GT(schedule->rate(steps), 0.1);
  const auto found = range.suggestion();
  ASSERT_TRUE(found);
  EXPECT_GT(found->steepest, 1e-4);
  EXPECT_LT(found->steepest, 0.1);
  EXPECT_GT(found->minimum, found->steepest);
  EXPECT_EQ(range.points().size(), static_cast<size_t>(steps) + 1);
}

TEST(LrRange, EndsAtOnceWhereTheLossIsNone) {
  LrRange range;
  EXPECT_TRUE(range.add(1e-7, 1));
  EXPECT_FALSE(range.add(1e-6, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(range.suggestion());
  EXPECT_THAT(range.csv(), HasSubstr("step,lr,loss,smoothed_loss\n1,1e-07,1,1\n2,1e-06,nan,nan\n"));
}

TEST(LrRange, TheFirstLossIsNotSmoothedAway) {
  LrRange range;
  range.add(1, 3);
  range.add(2, 3);
  EXPECT_TRUE(tests::close(range.points()[1].smoothed, 3, kFp64, 200));  // 0.02 has lost digits
}

TEST(LrRange, DrawsTheCurve) {
  LrRange range;
  for (int i = 0; i < 20; ++i) range.add(std::pow(10.0, -4 + 0.2 * i), 1 - 0.04 * i);
  EXPECT_THAT(range.svg(), ::testing::AllOf(HasSubstr("<svg"), HasSubstr("learning rate"), HasSubstr("steepest: ")));
}

}  // namespace
}  // namespace welkin::train
