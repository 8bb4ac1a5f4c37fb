// SPDX-License-Identifier: Apache-2.0
// Training for several steps of the model through a pipeline: losses and weights of the same ranks without one, under every
// schedule and beside other axes, and activations that the schedule promises.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "number_close.h"
#include "parallel/pipeline/pipeline_engine.h"
#include "parallel/pipeline/schedule_timing.h"
#include "rank_processes.h"
#include "tied_model.h"
#include "tiny_ranks.h"

namespace welkin::train {
namespace {

using config::PipelineSchedule;

constexpr int64_t kRolloutSteps = 4;  // the third is short
constexpr std::array kRolloutSchedules{PipelineSchedule::GPipe, PipelineSchedule::OneForwardOneBackward,
                                       PipelineSchedule::Interleaved, PipelineSchedule::ZeroBubble};

// The last stage adds the newest input, and of each step it is another one.
config::RunConfig rollout_config(const ScratchFolder& root, int64_t leads) {
  config::RunConfig config = tiny_config(root.path());
  config.model.depth = 4;
  config.model.residual = true;
  config.loop.micro_batch_size = 1;
  config.optimizer.optimizer = "SGD";  // Adam divides by its own noise where a gradient is all but zero
  config.optimizer.clip_norm = 0.5;
  config.loss.multistep = leads;
  config.loss.input_noise = 0.05;
  return config;
}

// Gradients add up in another order: all micro-batches of a step of the model, or all steps of a micro-batch.
void expect_rollouts_without_pipeline(parallel::Connection& connection, config::RunConfig config, int64_t stages) {
  SCOPED_TRACE(cat(config::name_of(config.parallel.pipeline_schedule), ", ", config.loss.multistep.most(), " steps"));
  const PipelineSchedule schedule = std::exchange(config.parallel.pipeline_schedule, PipelineSchedule::OneForwardOneBackward);
  TinySteps plain(config, nullptr, neighbours(connection, connection.world_size() / stages));
  config.parallel.pipeline_schedule = schedule;
  config.parallel.pipeline_parallel = stages;
  TinySteps piped(config, nullptr, ranks_of(connection));
  for (int64_t step = 0; step < kRolloutSteps; ++step) {
    const StepRecord want = plain.next(), got = piped.next();
    EXPECT_EQ(got.samples, want.samples);
    EXPECT_TRUE(tests::close(got.loss.item<float>(), want.loss.item<float>(), kFp32, 64));
    EXPECT_TRUE(tests::close(got.gradient.norm.item<float>(), want.gradient.norm.item<float>(), kFp32, 256));
    EXPECT_TRUE(at::equal(got.gradient.found_inf, want.gradient.found_inf));
  }
  for (const parallel::ParamRow& row : piped.setup().table.rows()) {
    const at::Tensor& wanted = plain.setup().table.at(row.name).local;
    const double scale = std::max(1.0, wanted.abs().max().item<double>());
    EXPECT_TRUE(tests::rounds_to((row.local - wanted).abs().max().item<double>(), 0, scale, kFp32, 16)) << row.name;
  }
  EXPECT_EQ(piped.forward_log().empty(), !piped.setup().pipeline->has_output());
}

const parallel::RankTest kRolledOut("pipeline_rollouts", [](parallel::Connection& connection) {
  const ScratchFolder root;
  for (const int64_t leads : {2, 3}) {
    for (const PipelineSchedule schedule : kRolloutSchedules) {
      config::RunConfig config = rollout_config(root, leads);
      config.parallel.pipeline_schedule = schedule;
      expect_rollouts_without_pipeline(connection, config, 2);
    }
  }
});

const parallel::RankTest kRolledOutFour("pipeline_rollouts_of_four", [](parallel::Connection& connection) {
  const ScratchFolder root;
  for (const PipelineSchedule schedule :
       {PipelineSchedule::GPipe, PipelineSchedule::OneForwardOneBackward, PipelineSchedule::ZeroBubble}) {
    config::RunConfig config = rollout_config(root, 3);
    config.parallel.pipeline_schedule = schedule;
    // Biases that are added apart from matmuls are rounded twice.
    if (schedule != PipelineSchedule::ZeroBubble) config.precision.amp_mode = config::AmpMode::Bf16;
    expect_rollouts_without_pipeline(connection, config, 4);
  }
});

const parallel::RankTest kRolledOutOptions("pipeline_rollout_options", [](parallel::Connection& connection) {
  const ScratchFolder root;
  for (const PipelineSchedule schedule :
       {PipelineSchedule::GPipe, PipelineSchedule::OneForwardOneBackward, PipelineSchedule::Interleaved}) {
    config::RunConfig config = rollout_config(root, 3);
    config.parallel.pipeline_schedule = schedule;
    config.loss.multistep_recompute = true;
    config.optimizer.ema_decay = 0.5;
    expect_rollouts_without_pipeline(connection, config, 2);
    config.loss.multistep_gradient = config::MultistepGradient::Last;
    expect_rollouts_without_pipeline(connection, config, 2);
    config.loss.multistep_recompute = false;
    config.loop.activation_checkpointing = config::CheckpointedPart::Blocks;
    expect_rollouts_without_pipeline(connection, config, 2);
    config.optimizer.freeze = {"blocks.0.*", "pos_embed"};
    config.loss.multistep_gradient = config::MultistepGradient::All;
    expect_rollouts_without_pipeline(connection, config, 2);
  }
  config::RunConfig config = rollout_config(root, 1);  // noise alone
  expect_rollouts_without_pipeline(connection, config, 2);
});

const parallel::RankTest kRolledOutBesides("pipeline_rollouts_beside_axes", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = rollout_config(root, 2);
  expect_rollouts_without_pipeline(connection, config, 2);  // beside dp
  config.parallel.tensor_parallel = 2;
  expect_rollouts_without_pipeline(connection, config, 2);
  config.parallel.sequence_parallel = true;
  config.parallel.pipeline_schedule = PipelineSchedule::ZeroBubble;
  expect_rollouts_without_pipeline(connection, config, 2);
  config.parallel.tensor_parallel = 1;
  config.parallel.sequence_parallel = false;
  config.parallel.context_parallel = 2;
  config.parallel.context_io = config::ContextIo::Gathered;  // tiny steps read whole samples
  config.parallel.pipeline_schedule = PipelineSchedule::GPipe;
  expect_rollouts_without_pipeline(connection, config, 2);
});

// Each with noise and masks of its own, of one step of the model and of several.
const parallel::RankTest kRolledOutMembers("pipeline_rollout_members", [](parallel::Connection& connection) {
  const ScratchFolder root;
  for (const PipelineSchedule schedule : kRolloutSchedules) {
    for (const int64_t leads : {1, 3}) {
      config::RunConfig config = rollout_config(root, leads);
      config.parallel.pipeline_schedule = schedule;
      config.model.dropout = 0.1;
      config.loss.loss = "mae";
      config.loss.ensemble_members = 3;
      expect_rollouts_without_pipeline(connection, config, 2);
      if (leads == 1 || schedule == PipelineSchedule::ZeroBubble) continue;
      config.loss.multistep_recompute = true;
      config.precision.amp_mode = config::AmpMode::Bf16;
      expect_rollouts_without_pipeline(connection, config, 2);
      config.loss.multistep_gradient = config::MultistepGradient::Last;
      expect_rollouts_without_pipeline(connection, config, 2);
    }
  }
});

const parallel::RankTest kRolloutsHeld("pipeline_rollouts_held", [](parallel::Connection& connection) {
  const ScratchFolder root;
  for (const PipelineSchedule schedule : kRolloutSchedules) {
    for (const bool only_last : {false, true}) {
      config::RunConfig config = rollout_config(root, 3);
      config.parallel.pipeline_parallel = connection.world_size();
      config.parallel.pipeline_schedule = schedule;
      if (only_last) config.loss.multistep_gradient = config::MultistepGradient::Last;
      TinySteps steps(config, nullptr, ranks_of(connection));
      steps.next();
      const parallel::PipelineShape shape{connection.world_size(), 4, config.parallel.chunks(), 3, only_last};
      const double promised =
          parallel::time_schedule(parallel::make_schedule(schedule, shape)).held[static_cast<size_t>(connection.rank())];
      EXPECT_EQ(static_cast<double>(steps.setup().pipeline->most_held()), promised * static_cast<double>(shape.chunks))
          << config::name_of(schedule);
    }
  }
});

// Its segments do not say that they leave the model's input alone.
class LookingNet : public tests::TiedNet {
 public:
  using TiedNet::TiedNet;

  std::vector<model::Segment> segments() override {
    std::vector<model::Segment> segments = TiedNet::segments();
    for (model::Segment& segment : segments) segment.reads_input = true;
    return segments;
  }
};

void add_looking_model(Registries& registries) {
  model::ModelEntry entry = tests::tied_model();
  entry.build = [](const config::ModelConfig& config, const model::ModelShape& shape) -> model::ModelPtr {
    return std::make_shared<LookingNet>(config, shape);
  };
  registries.models.add("looking", entry);
}

const parallel::RankTest kRolloutsRefused("pipeline_rollouts_refused", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = rollout_config(root, 2);
  config.model.model = "looking";
  config.model.residual = false;
  config.parallel.pipeline_parallel = connection.world_size();
  try {
    const TinySteps steps(config, nullptr, ranks_of(connection), add_looking_model);
    FAIL() << "no ConfigError";
  } catch (const ConfigError& error) {
    EXPECT_THAT(
        error.what(),
        testing::HasSubstr("in a rollout no block between the first and the last stage may read the model's input: "
                           "model=looking, block=layers.1, multistep=2, stages=0,1,2,3. Set Segment::reads_input to false"));
  }
});

TEST(PipelineRollouts, RefuseBlocksThatLookAtTheInput) { parallel::run_on_ranks("pipeline_rollouts_refused", 4); }
TEST(PipelineRollouts, AreThoseOfOneProcess) { parallel::run_on_ranks("pipeline_rollouts", 2, 180); }
TEST(PipelineRollouts, GoThroughFourStages) { parallel::run_on_ranks("pipeline_rollouts_of_four", 4, 180); }
TEST(PipelineRollouts, GoWithEveryOption) { parallel::run_on_ranks("pipeline_rollout_options", 2, 180); }
TEST(PipelineRollouts, HaveMembers) { parallel::run_on_ranks("pipeline_rollout_members", 2, 180); }
TEST(PipelineRollouts, GoBesideEveryOtherAxis) { parallel::run_on_ranks("pipeline_rollouts_beside_axes", 4, 180); }
TEST(PipelineRollouts, HoldTheActivationsThatTheScheduleSays) { parallel::run_on_ranks("pipeline_rollouts_held", 2, 120); }

}  // namespace
}  // namespace welkin::train
