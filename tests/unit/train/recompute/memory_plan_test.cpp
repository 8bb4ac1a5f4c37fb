// SPDX-License-Identifier: Apache-2.0
// The dynamic programme against all choices that there are.
#include "train/recompute/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace welkin::train {
namespace {

std::vector<MemoryPlan> all_plans(const StepMemory& step) {
  std::vector<MemoryPlan> plans;
  std::vector<size_t> options(step.parts.size(), 0);
  for (;;) {
    plans.push_back(plan_with(step, options));
    size_t part = 0;
    while (part < options.size() && ++options[part] == step.parts[part].options.size()) options[part++] = 0;
    if (part == options.size()) return plans;
  }
}

// Bytes are few enough for a grain to be one, so that the optimum is exact.
StepMemory random_step(std::mt19937& random, size_t parts, size_t options) {
  const auto draw = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
  StepMemory step{.parts = {}, .peak_elsewhere = 1000 + draw(500), .seconds = 10};
  for (size_t i = 0; i < parts; ++i) {
    MemoryPart part{.options = {}, .peak_after_forward = 1000 + draw(300), .peak_after_backward = 1000 + draw(300)};
    for (size_t option = 0; option < options; ++option) {
      part.options.push_back({.kept = option == 0 ? 0 : draw(400),
                              .forward_peak = 1000 + draw(500),
                              .backward_peak = 1000 + draw(600),
                              .seconds = static_cast<double>(draw(8)) / 4});
    }
    step.parts.push_back(std::move(part));
  }
  return step;
}

TEST(MemoryPlan, IsTheFastestOfAllThatFit) {
  std::mt19937 random(5);
  int found = 0, refused = 0;
  for (int round = 0; round < 150; ++round) {
    const StepMemory step = random_step(random, 1 + random() % 5, 1 + random() % 4);
    const std::vector<MemoryPlan> plans = all_plans(step);
    const int64_t budget = 1100 + static_cast<int64_t>(random() % 1500);
    double fastest = -1;
    for (const MemoryPlan& plan : plans) {
      if (plan.peak <= budget && (fastest < 0 || plan.seconds < fastest)) fastest = plan.seconds;
    }
    const auto plan = fastest_plan(step, budget);
    ASSERT_EQ(plan.has_value(), fastest >= 0) << round;
    ++(plan ? found : refused);
    if (!plan) continue;
    EXPECT_LE(plan->peak, budget) << round;
    EXPECT_DOUBLE_EQ(plan->seconds, fastest) << round;
  }
  EXPECT_GT(found, 30);
  EXPECT_GT(refused, 10);
}

TEST(MemoryPlan, KnowsTheLeastThatIsPossible) {
  std::mt19937 random(6);
  for (int round = 0; round < 60; ++round) {
    const StepMemory step = random_step(random, 1 + random() % 5, 1 + random() % 4);
    int64_t least = INT64_MAX;
    for (const MemoryPlan& plan : all_plans(step)) least = std::min(least, plan.peak);
    EXPECT_EQ(smallest_plan(step).peak, least) << round;
    EXPECT_FALSE(fastest_plan(step, least - 1)) << round;
  }
}

// Forty parts of gigabytes with five options each: 5^40 choices, solved within the bound of one grain a part.
TEST(MemoryPlan, CountsLargeModelsInGrains) {
  constexpr int64_t kMib = int64_t{1} << 20;
  StepMemory step{.parts = {}, .peak_elsewhere = 100 * kMib, .seconds = 1};
  for (int64_t i = 0; i < 40; ++i) {
    MemoryPart part{.options = {}, .peak_after_forward = 500 * kMib, .peak_after_backward = 400 * kMib};
    for (int64_t option = 0; option < 5; ++option) {
      const int64_t kept = option * (97 * kMib + 12345 * i);
      part.options.push_back({.kept = kept,
                              .forward_peak = 600 * kMib,
                              .backward_peak = 700 * kMib,
                              .seconds = 0.1 * static_cast<double>(4 - option)});
    }
    step.parts.push_back(std::move(part));
  }
  const int64_t all = plan_with(step, std::vector<size_t>(40, 4)).peak, none = plan_with(step, std::vector<size_t>(40, 0)).peak;
  const int64_t budget = none + (all - none) / 2;
  const auto plan = fastest_plan(step, budget);
  ASSERT_TRUE(plan);
  EXPECT_LE(plan->peak, budget);
  EXPECT_GE(plan->peak, budget - 98 * kMib) << "another option's worth fits in none of the parts";
  EXPECT_LE(smallest_plan(step).peak, none);
}

TEST(MemoryPlan, OfAModelWithoutPartsIsTheStepItself) {
  const StepMemory step{.parts = {}, .peak_elsewhere = 7, .seconds = 2};
  ASSERT_TRUE(fastest_plan(step, 7));
  EXPECT_EQ(fastest_plan(step, 7)->seconds, 2);
  EXPECT_FALSE(fastest_plan(step, 6));
  EXPECT_EQ(smallest_plan(step).peak, 7);
}

}  // namespace
}  // namespace welkin::train
