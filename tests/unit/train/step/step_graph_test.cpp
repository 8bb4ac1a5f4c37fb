// SPDX-License-Identifier: Apache-2.0
// Recorded steps: which are recorded, on which tensors they work, and that a run of them equals the run without. The recorder
// here runs on a CPU: it keeps the work and calls it again.
#include "train/step/step_graph.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tiny_steps.h"

namespace welkin::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

StepShape form_of_samples(int64_t samples) {
  return {.input = {samples, 2}, .target = {samples, 1}, .own_samples = samples, .samples = samples};
}

std::string phases_of(RecordingRule& rule, const std::vector<std::pair<int64_t, bool>>& steps) {
  std::string text;
  for (const auto& [samples, is_watched] : steps)
    text += "wRr-"[static_cast<size_t>(rule.next(form_of_samples(samples), is_watched))];
  return text;
}

TEST(RecordingRule, WarmsUpRecordsOnceAndReplays) {
  RecordingRule rule(3);
  EXPECT_EQ(phases_of(rule, {{4, false}, {4, false}, {4, false}, {4, false}, {4, false}, {4, false}}), "wwwRrr");
}

TEST(RecordingRule, OtherFormsAndWatchedStepsRunAsTheyAre) {
  RecordingRule rule(2);
  EXPECT_EQ(phases_of(rule, {{3, false}, {4, false}, {4, true}, {4, true}, {4, false}, {3, false}, {4, true}, {4, false}}),
            "www-R--r")
      << "the short step first, as where a run goes on at the end of an epoch";
  EXPECT_EQ(phases_of(rule, {{3, false}, {3, false}, {3, false}}), "---") << "one form is recorded";
}

TEST(RecordingRule, AFormIsAllThatARecordingFixes) {
  const StepShape form{.input = {4, 2}, .target = {4, 1}, .num_micro = 2, .own_samples = 8, .samples = 16};
  for (const StepShape& other :
       {StepShape{{4, 3}, {4, 1}, 2, 8, 16}, StepShape{{4, 2}, {4, 2}, 2, 8, 16}, StepShape{{4, 2}, {4, 1}, 1, 8, 16},
        StepShape{{4, 2}, {4, 1}, 2, 7, 16}, StepShape{{4, 2}, {4, 1}, 2, 8, 15}}) {
    RecordingRule rule(0);
    EXPECT_EQ(rule.next(form, false), StepPhase::Record);
    EXPECT_EQ(rule.next(other, false), StepPhase::Eager);
    EXPECT_EQ(rule.next(form, false), StepPhase::Replay);
  }
}

data::Batch micro_batch(int64_t samples, int64_t micro, int64_t num_micro, double value) {
  data::Batch batch;
  batch.input = at::full({samples, 2}, value, at::kFloat);
  batch.target = at::full({samples, 1}, value, at::kFloat);
  batch.sample = at::full({samples}, micro, at::kLong);
  batch.micro = micro;
  batch.num_micro = num_micro;
  batch.step_samples = 7;
  return batch;
}

TEST(StepGraph, WorksOnItsOwnTensorsAndHasARecordingPerKindOfMicroBatch) {
  RecorderCalls recorder_calls;
  StepGraph graph(std::make_unique<EagerRecorder>(recorder_calls));
  std::vector<const void*> places;
  std::vector<double> values;
  const auto work = [&](const data::Batch& batch) {
    places.push_back(batch.input.const_data_ptr());
    values.push_back(batch.input.sum().item<double>() + batch.target.sum().item<double>() + batch.sample.sum().item<double>());
  };
  for (int64_t step = 0; step < RecordingRule::kWarmUps; ++step)
    EXPECT_EQ(graph.begin(micro_batch(2, 0, 4, 0), 7, false), StepPhase::WarmUp);
  for (const double value : {1.0, 10.0}) {
    const StepPhase phase = graph.begin(micro_batch(2, 0, 4, value), 7, false);
    EXPECT_EQ(phase, value == 1.0 ? StepPhase::Record : StepPhase::Replay);
    for (int64_t micro = 0; micro < 4; ++micro) graph.run_micro(micro_batch(micro == 3 ? 1 : 2, micro, 4, value), work);
  }
  EXPECT_THAT(recorder_calls.replayed, ElementsAre(0, 1, 1, 2, 0, 1, 1, 2)) << "first, middle, last";
  EXPECT_THAT(values, ElementsAre(6, 8, 10, 6, 60, 62, 64, 33)) << "each replay reads the batch of its own time";
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(places[i], places[i + 4]);
  EXPECT_EQ(places[0], places[1]);
  EXPECT_NE(places[0], places[3]) << "the shorter one";
}

// The copy to its place lays the input out as the model wants it: a pass over the boxes less in every replay.
TEST(StepGraph, ThePlaceOfTheInputMayBeChannelsLast) {
  for (const bool channels_last : {false, true}) {
    RecorderCalls recorder_calls;
    StepGraph graph(std::make_unique<EagerRecorder>(recorder_calls), /*warm_ups=*/0, channels_last);
    data::Batch batch = micro_batch(2, 0, 1, 3);
    batch.input = at::arange(2 * 3 * 8, at::kFloat).view({2, 3, 2, 2, 2});
    graph.begin(batch, 7, false);
    at::Tensor placed;
    graph.run_micro(batch, [&](const data::Batch& at_place) { placed = at_place.input; });
    EXPECT_EQ(placed.is_contiguous(at::MemoryFormat::ChannelsLast3d), channels_last);
    EXPECT_TRUE(at::equal(placed, batch.input));
  }
}

TEST(StepGraph, IsRefusedWhereStepsCannotBeRecorded) {
  config::RunConfig config;
  EXPECT_EQ(graph_recorder(config, at::kCPU), nullptr);
  config.backend.cuda_graph = true;
  EXPECT_THAT([&] { graph_recorder(config, at::kCPU); },
              ThrowsMessage<ConfigError>(
                  HasSubstr("[cuda_graph] steps cannot be recorded here: cuda_graph=true, device=cpu. Run on a GPU")));
  EXPECT_THAT([&] { graph_recorder(config, at::kCUDA); },
              ThrowsMessage<ConfigError>(HasSubstr("libwelkin_cuda.so=absent. Build it with ./quickstart.sh --cuda")));
}

class RecordedSteps : public ::testing::TestWithParam<std::tuple<const char*, int64_t, config::AmpMode>> {};

TEST_P(RecordedSteps, EqualTheStepsAsTheyAreBitForBit) {
  const ScratchFolder root;
  config::RunConfig config = tiny_config(root.path());
  std::tie(config.optimizer.optimizer, config.loop.micro_batch_size, config.precision.amp_mode) = GetParam();
  config.optimizer.clip_norm = 0.5;
  config.precision.loss_scale_window = 5;
  RecorderCalls recorder_calls;
  TinySteps eager(config, nullptr), recorded(config, &recorder_calls);
  for (int64_t step = 0; step < 12; ++step) {
    expect_equal_steps(recorded.next(), eager.next(), step);
  }
  EXPECT_EQ(recorder_calls.runs, 12U);
  EXPECT_EQ(recorder_calls.recorded, config.loop.micro_batch_size == 4 ? 1U : config.loop.micro_batch_size == 2 ? 2U : 3U);
  EXPECT_FALSE(recorder_calls.replayed.empty());
  expect_equal_runs(recorded, eager);
}

INSTANTIATE_TEST_SUITE_P(Kinds, RecordedSteps,
                         ::testing::Values(std::tuple("AdamW", 4, config::AmpMode::None),
                                           std::tuple("Adam", 2, config::AmpMode::None),
                                           std::tuple("SGD", 1, config::AmpMode::None),
                                           std::tuple("AdamW", 4, config::AmpMode::Bf16),
                                           std::tuple("Adam", 4, config::AmpMode::Fp16)));

// Samples of several steps of the model, with noise, of which each step runs again in the backward pass.
TEST(RecordedSteps, HoldSeveralStepsOfTheModel) {
  const ScratchFolder root;
  config::RunConfig config = tiny_config(root.path());
  config.loop.micro_batch_size = 2;
  config.loss.multistep = 2;
  config.loss.input_noise = 0.1;
  for (const bool runs_again : {false, true}) {
    config.loss.multistep_recompute = runs_again;
    RecorderCalls recorder_calls;
    TinySteps eager(config, nullptr), recorded(config, &recorder_calls);
    for (int64_t step = 0; step < 9; ++step) expect_equal_steps(recorded.next(), eager.next(), step);
    EXPECT_EQ(recorder_calls.recorded, 2U);
    EXPECT_FALSE(recorder_calls.replayed.empty());
    expect_equal_runs(recorded, eager);
  }
}

TEST(RecordedSteps, AreSeenWhereTheyRunAsTheyAre) {
  const ScratchFolder root;
  config::RunConfig config = tiny_config(root.path());
  config.loop.micro_batch_size = 4;
  RecorderCalls recorder_calls;
  TinySteps recorded(config, &recorder_calls);
  std::string forward_log;
  for (int64_t step = 0; step < 12; ++step) {
    recorded.next();
    forward_log += recorded.forward_log() + "|";
  }
  // Two full steps and a short one an epoch: three warm-ups of the full form and one of the short, recorded is the fourth full
  // one.
  EXPECT_EQ(forward_log, "0.0 |1.0 |2.0 |0.0 ||2.0 ||1.0 |2.0 |||2.0 |");
}

TEST(RecordedSteps, NumbersOfAStepAreNotThoseOfTheNext) {
  const ScratchFolder root;
  config::RunConfig config = tiny_config(root.path());
  config.loop.micro_batch_size = 4;
  RecorderCalls recorder_calls;
  TinySteps recorded(config, &recorder_calls);
  for (int64_t step = 0; step < 9; ++step) recorded.next();
  const StepRecord before = recorded.next();
  const double loss = before.loss.item<double>(), rate = before.rate.item<double>();
  const StepRecord after = recorded.next();
  EXPECT_EQ(before.loss.item<double>(), loss);
  EXPECT_EQ(before.rate.item<double>(), rate);
  EXPECT_NE(after.rate.item<double>(), rate) << "the schedule moves in a replay";
}

}  // namespace
}  // namespace welkin::train
