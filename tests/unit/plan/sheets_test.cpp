// SPDX-License-Identifier: Apache-2.0
#include "plan/sheets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plan/roofline.h"
#include "plan/state_bytes.h"
#include "small_run.h"

namespace welkin::plan {
namespace {

using ::testing::ContainsRegex;

TEST(LectureSheet, HoldsTheWorkedNumbers) {
  const std::string text = figures_text(lecture_sheet());
  for (const char* row :
       {"2\\.7e9 parameters +1\\.2 +days", "6\\.7e9 parameters +3\\.0 +days", "13e9 parameters +5\\.6 +days",
        "175e9 parameters +72\\.3 +days", "2 \\+ 2 \\+ 12\\) +14\\.90", "fp32 weights alone +651\\.92",
        "compute-bound above +153\\.0 +FLOP/B", "fp16 addition +0\\.167", "1024 x 1024 +341\\.3", "A100 peak, TF32 +155\\.9"}) {
    EXPECT_THAT(text, ContainsRegex(row));
  }
}

// GPT-3 on one A100 at its peak: the slide's 31 years.
TEST(LanguageModelSheet, CountsItsDevices) {
  LanguageModelQuestion question{
      .training = {.tokens = 300e9, .parameters = 175e9, .devices = 1, .flops_per_second = 312e12, .flops_per_parameter = 6}};
  EXPECT_THAT(figures_text(language_model_sheet(question)),
              ContainsRegex("days to train +11685\\.4 +days +1 device at 312 TFLOP/s"));
  question.training.devices = 480;
  EXPECT_THAT(figures_text(language_model_sheet(question)),
              ContainsRegex("days to train +24\\.3 +days +480 devices at 312 TFLOP/s"));
}

TEST(Zero, SharesOutWhatItsStageSays) {
  EXPECT_DOUBLE_EQ(zero_bytes_per_parameter(0, 64), 16);
  EXPECT_DOUBLE_EQ(zero_bytes_per_parameter(1, 64), 4 + 12.0 / 64);
  EXPECT_DOUBLE_EQ(zero_bytes_per_parameter(2, 64), 2 + 14.0 / 64);
  EXPECT_DOUBLE_EQ(zero_bytes_per_parameter(3, 64), 16.0 / 64);
  EXPECT_DOUBLE_EQ(zero_traffic_per_parameter(2), 2);
  EXPECT_DOUBLE_EQ(zero_traffic_per_parameter(3), 3);
}

TEST(RunSheet, LengthThatOnlyTheFilesKnowIsNotInvented) {
  config::RunConfig config = small_config();
  config.loop.num_iters = 0;
  config.loop.num_epochs = 3;
  RunFacts facts = small_facts();
  facts.flops_per_second = 1e12;
  EXPECT_EQ(estimate_run(config, facts).samples, std::nullopt);
  EXPECT_EQ(estimate_run(config, facts).run_seconds, std::nullopt);
  facts.samples_per_epoch = 64;
  EXPECT_EQ(estimate_run(config, facts).samples, 192);
  const auto json = nlohmann::json::parse(figures_json(run_sheet(estimate_run(small_config(), small_facts()))));
  EXPECT_TRUE(json["time on 1 device"]["a step"]["value"].is_null());
  EXPECT_EQ(json["work"]["samples of the run"]["value"], 800);
}

TEST(Sheets, ARunNamesTheBubbleThatItsStepContains) {
  RunEstimate run = estimate_run(small_config(), small_facts());
  EXPECT_FALSE(nlohmann::json::parse(figures_json(run_sheet(run)))["time on 1 device"].contains("bubble of the pipeline"));
  run.idle = 0.75;
  EXPECT_EQ(nlohmann::json::parse(figures_json(run_sheet(run)))["time on 1 device"]["bubble of the pipeline"]["value"], 75);
}

}  // namespace
}  // namespace welkin::plan
