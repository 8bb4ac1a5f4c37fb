// SPDX-License-Identifier: Apache-2.0
#include "plan/language_model.h"

#include <gtest/gtest.h>

namespace welkin::plan {
namespace {

double days(double billions, double teraflops) {
  return training_days({.tokens = 300e9, .parameters = billions * 1e9, .devices = 480, .flops_per_second = teraflops * 1e12});
}

// As the lecture prints them, rounded to a tenth.
TEST(LanguageModel, DaysOfTheLecture) {
  EXPECT_NEAR(days(2.7, 127), 1.2, 0.05);
  EXPECT_NEAR(days(6.7, 130), 3.0, 0.05);
  EXPECT_NEAR(days(13, 135), 5.6, 0.05);
  EXPECT_NEAR(days(175, 140), 72.3, 0.05);
}

TEST(LanguageModel, RecomputationIsAThirdOnTop) {
  GptTraining training{.tokens = 1e9, .parameters = 1e9, .devices = 8, .flops_per_second = 1e14};
  const double with = training_days(training);
  training.flops_per_parameter = 6;
  EXPECT_NEAR(with / training_days(training), 4.0 / 3, 1e-12);
}

struct TableRow {
  double billions, heads_unused, hidden, layers;
};

// Parameters of the lecture's table of weak scaling, which the formula gives with 51200 words and 2048 tokens.
TEST(LanguageModel, ParametersOfTheWeakScalingTable) {
  for (const TableRow& row : {TableRow{1.7, 24, 2304, 24}, TableRow{3.6, 32, 3072, 30}, TableRow{18.4, 48, 6144, 40},
                              TableRow{145.6, 96, 12288, 80}, TableRow{1008.0, 160, 25600, 128}}) {
    EXPECT_NEAR(gpt_parameters({.layers = row.layers, .hidden = row.hidden}) / 1e9 / row.billions, 1.0, 0.03) << row.billions;
  }
}

// The same table: FLOPs of a step over what its GPUs achieve is a step's time, and 8 tokens P the larger part of the FLOPs.
TEST(LanguageModel, StepFlopsAreEightPerTokenAndParameterButForAttention) {
  const GptShape shape{.layers = 96, .hidden = 12288};
  const double batch = 1536, tokens = batch * shape.sequence;
  const double ratio = gpt_step_flops(shape, batch) / (8 * tokens * gpt_parameters(shape));
  EXPECT_GT(ratio, 1.0);
  EXPECT_LT(ratio, 1.05);
}

}  // namespace
}  // namespace welkin::plan
