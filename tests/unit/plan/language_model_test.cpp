// SPDX-License-Identifier: Apache-2.0
#include "plan/language_model.h"

#include <gtest/gtest.h>

#include "number_close.h"

namespace welkin::plan {
namespace {

constexpr tests::Stated kPublished{0.05, "half of the last digit of the published table"};

double days(double billions, double teraflops) {
  return training_days({.tokens = 300e9, .parameters = billions * 1e9, .devices = 480, .flops_per_second = teraflops * 1e12});
}

// As the lecture prints them, rounded to a tenth.
TEST(LanguageModel, DaysOfTheLecture) {
  EXPECT_TRUE(tests::within(days(2.7, 127), 1.2, kPublished));
  EXPECT_TRUE(tests::within(days(6.7, 130), 3.0, kPublished));
  EXPECT_TRUE(tests::within(days(13, 135), 5.6, kPublished));
  EXPECT_TRUE(tests::within(days(175, 140), 72.3, kPublished));
}

TEST(LanguageModel, RecomputationIsAThirdOnTop) {
  GptTraining training{.tokens = 1e9, .parameters = 1e9, .devices = 8, .flops_per_second = 1e14};
  const double with = training_days(training);
  training.flops_per_parameter = 6;
  EXPECT_TRUE(tests::close(with / training_days(training), 4.0 / 3, kFp64, 8));
}

struct TableRow {
  double billions, heads_unused, hidden, layers;
};

// Parameters of the lecture's table of weak scaling, which the formula gives with 51200 words and 2048 tokens.
TEST(LanguageModel, ParametersOfTheWeakScalingTable) {
  for (const TableRow& row : {TableRow{1.7, 24, 2304, 24}, TableRow{3.6, 32, 3072, 30}, TableRow{18.4, 48, 6144, 40},
                              TableRow{145.6, 96, 12288, 80}, TableRow{1008.0, 160, 25600, 128}}) {
    EXPECT_TRUE(tests::within(gpt_parameters({.layers = row.layers, .hidden = row.hidden}) / 1e9 / row.billions, 1.0,
                              {0.03, "the names of the models are rounded"}))
        << row.billions;
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
