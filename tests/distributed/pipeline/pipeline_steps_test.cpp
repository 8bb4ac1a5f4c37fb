// SPDX-License-Identifier: Apache-2.0
// Training steps through a pipeline: the bits of the same ranks without one, activations that the schedule promises, and
// checkpoints that move to other layouts.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "number_close.h"
#include "parallel/comm/collectives.h"
#include "parallel/pipeline/pipeline_engine.h"
#include "parallel/pipeline/schedule_timing.h"
#include "rank_processes.h"
#include "sharded_state.h"
#include "tiny_ranks.h"

namespace welkin::train {
namespace {

using config::PipelineSchedule;

constexpr int64_t kPipelineSteps = 5;  // the third has three samples of four
constexpr std::array kRunSchedules{PipelineSchedule::GPipe, PipelineSchedule::OneForwardOneBackward,
                                   PipelineSchedule::Interleaved};

config::RunConfig pipeline_config(const ScratchFolder& root) {
  config::RunConfig config = tiny_config(root.path());
  config.model.depth = 4;
  config.loop.micro_batch_size = 1;
  config.optimizer.clip_norm = 0;  // the norm is summed in another order
  return config;
}

void expect_own_rows_equal(TinySteps& got, TinySteps& wanted) {
  for (const parallel::ParamRow& row : got.setup().table.rows()) {
    EXPECT_TRUE(at::equal(row.local, wanted.setup().table.at(row.name).local)) << row.name;
  }
}

// The pipeline is the slowest axis: ranks of its first stage are those of a run without one.
void expect_steps_without_pipeline(parallel::Connection& connection, config::RunConfig config, int64_t stages) {
  TinySteps plain(config, nullptr, neighbours(connection, connection.world_size() / stages));
  config.parallel.pipeline_parallel = stages;
  TinySteps piped(config, nullptr, ranks_of(connection));
  EXPECT_LT(piped.setup().table.rows().size(), plain.setup().table.rows().size());
  EXPECT_EQ(piped.setup().table.num_parameters(), plain.setup().table.num_parameters());
  for (int64_t step = 0; step < kPipelineSteps; ++step) {
    const StepRecord want = plain.next(), got = piped.next();
    EXPECT_EQ(got.samples, want.samples);
    EXPECT_EQ(got.num_samples, want.num_samples);
    EXPECT_TRUE(at::equal(got.loss, want.loss)) << got.loss.item<float>() << " " << want.loss.item<float>();
    EXPECT_FLOAT_EQ(got.gradient.norm.item<float>(), want.gradient.norm.item<float>());
    EXPECT_TRUE(at::equal(got.gradient.found_inf, want.gradient.found_inf));
  }
  expect_own_rows_equal(piped, plain);
}

const parallel::RankTest kPipedBits("pipeline_steps", [](parallel::Connection& connection) {
  const ScratchFolder root;
  for (const PipelineSchedule schedule : kRunSchedules) {
    SCOPED_TRACE(config::name_of(schedule));
    config::RunConfig config = pipeline_config(root);
    config.parallel.pipeline_schedule = schedule;
    expect_steps_without_pipeline(connection, config, 2);
    config.precision.amp_mode = config::AmpMode::Bf16;
    config.loop.activation_checkpointing = config::CheckpointedPart::Blocks;
    config.optimizer.ema_decay = 0.5;
    expect_steps_without_pipeline(connection, config, 2);
  }
});

const parallel::RankTest kPipedFour("pipeline_of_four", [](parallel::Connection& connection) {
  const ScratchFolder root;
  for (const PipelineSchedule schedule : {PipelineSchedule::GPipe, PipelineSchedule::OneForwardOneBackward}) {
    config::RunConfig config = pipeline_config(root);
    config.parallel.pipeline_schedule = schedule;
    config.precision.amp_mode = config::AmpMode::Fp16;  // with loss scaling
    expect_steps_without_pipeline(connection, config, 4);
  }
});

const parallel::RankTest kPipedBesides("pipeline_beside_axes", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = pipeline_config(root);
  expect_steps_without_pipeline(connection, config, 2);  // beside dp
  config.parallel.tensor_parallel = 2;
  expect_steps_without_pipeline(connection, config, 2);
  config.parallel.sequence_parallel = true;
  config.parallel.pipeline_schedule = PipelineSchedule::Interleaved;
  expect_steps_without_pipeline(connection, config, 2);
  config.parallel.tensor_parallel = 1;
  config.parallel.sequence_parallel = false;
  config.parallel.context_parallel = 2;
  config.parallel.context_io = config::ContextIo::Gathered;  // tiny steps read whole samples
  expect_steps_without_pipeline(connection, config, 2);
});

// A NaN in one stage's weights: all skip the step.
const parallel::RankTest kPipedSkipped("pipeline_nonfinite", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = pipeline_config(root);
  config.parallel.pipeline_parallel = 2;
  TinySteps steps(config, nullptr, ranks_of(connection));
  EXPECT_EQ(steps.next().gradient.found_inf.item<float>(), 0);
  std::vector<at::Tensor> before;
  for (const parallel::ParamRow& row : steps.setup().table.rows()) {
    const at::NoGradGuard no_grad;
    if (row.name == "blocks.0.mlp.fc1.weight") row.local.view({-1})[0] = std::numeric_limits<float>::quiet_NaN();
    before.push_back(row.local.detach().clone());
  }
  EXPECT_EQ(steps.next().gradient.found_inf.item<float>(), 1);
  for (size_t i = 0; i < before.size(); ++i) {
    const parallel::ParamRow& row = steps.setup().table.rows()[i];
    const bool is_same = row.name == "blocks.0.mlp.fc1.weight" || at::equal(row.local, before[i]);
    EXPECT_TRUE(is_same) << row.name;
  }
});

const parallel::RankTest kPipedClipped("pipeline_clipping", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = pipeline_config(root);
  config.optimizer.optimizer = "SGD";
  config.optimizer.clip_norm = 0.1;
  TinySteps plain(config, nullptr);
  config.parallel.pipeline_parallel = connection.world_size();
  TinySteps piped(config, nullptr, ranks_of(connection));
  for (int64_t step = 0; step < 3; ++step) {
    const StepRecord want = plain.next(), got = piped.next();
    EXPECT_GT(want.gradient.norm.item<float>(), 0.1F);
    EXPECT_FLOAT_EQ(got.gradient.norm.item<float>(), want.gradient.norm.item<float>());
    EXPECT_FLOAT_EQ(got.gradient.scale.item<float>(), want.gradient.scale.item<float>());
  }
});

const parallel::RankTest kPipedHeld("pipeline_held", [](parallel::Connection& connection) {
  const ScratchFolder root;
  for (const PipelineSchedule schedule : kRunSchedules) {
    config::RunConfig config = pipeline_config(root);
    config.parallel.pipeline_parallel = connection.world_size();
    config.parallel.pipeline_schedule = schedule;
    TinySteps steps(config, nullptr, ranks_of(connection));
    steps.next();
    const parallel::PipelineShape shape{.ranks = connection.world_size(), .micros = 4, .chunks = config.parallel.chunks()};
    const double promised =
        parallel::time_schedule(parallel::make_schedule(schedule, shape)).held[static_cast<size_t>(connection.rank())];
    EXPECT_EQ(static_cast<double>(steps.setup().pipeline->most_held()), promised * static_cast<double>(shape.chunks))
        << config::name_of(schedule);
  }
});

// What a pipeline has saved is the file of one process, which any layout reads.
const parallel::RankTest kPipedMoved("pipeline_checkpoint", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = pipeline_config(root);
  config.optimizer.ema_decay = 0.5;
  TinySteps plain(config, nullptr);
  config.parallel.pipeline_parallel = 2;
  config.parallel.tensor_parallel = connection.world_size() / 2;
  TinySteps saved(config, nullptr, ranks_of(connection));
  if (config.parallel.tensor_parallel == 1) {
    for (int64_t step = 0; step < 2; ++step) plain.next();
    for (int64_t step = 0; step < 2; ++step) saved.next();
  }
  const std::filesystem::path folder = std::filesystem::path(parallel::rank_scratch_folder()) / "step_2";
  WholeGroups whole(groups_of(saved), layout_of(saved));
  if (connection.rank() == 0) write_checkpoint(folder, CheckpointIndex{}, whole.groups());
  whole.join_others();
  parallel::barrier(ranks_of(connection).world_group);
  config::RunConfig other = pipeline_config(root);
  other.optimizer.ema_decay = 0.5;
  TinySteps alone(other, nullptr);
  for (const CheckpointGroup& group : groups_of(alone)) read_parts(Checkpoint(folder), group, layout_of(alone));
  expect_equal_states(whole_state(alone), whole_state(plain));
  config.parallel.pipeline_schedule = PipelineSchedule::Interleaved;  // other stages
  TinySteps piped(config, nullptr, ranks_of(connection));
  for (const CheckpointGroup& group : groups_of(piped)) read_parts(Checkpoint(folder), group, layout_of(piped));
  if (config.parallel.tensor_parallel == 1) expect_own_rows_equal(piped, plain);
  EXPECT_EQ(saved.setup().table.names(), plain.setup().table.names());
});

// Forward passes alone fill the pipeline as well: the first stage goes on while the last one works, which here waits for that.
const parallel::RankTest kPipedForward("pipeline_forward", [](parallel::Connection& connection) {
  const parallel::Group ranks = ranks_of(connection).world_group;
  const parallel::Group signals = connection.make_group("signals", {.ranks = ranks.ranks(), .place = ranks.group_rank()});
  constexpr int64_t kMicros = 3;
  int64_t passes = 0;
  const auto first = [&](model::Tensors, const at::Tensor& input, const model::ForwardContext&) {
    if (++passes == kMicros) parallel::start_send(signals, at::zeros({1}), 1).wait();
    return model::Tensors{input + 1};
  };
  bool is_learning = true;
  const auto second = [&](model::Tensors in, const at::Tensor&, const model::ForwardContext&) {
    if (!is_learning && passes++ == 0) parallel::start_receive(signals, at::zeros({1}), 0).wait();
    return model::Tensors{in.at(0) * 2};
  };
  parallel::PipelineEngine engine(
      {{.name = "first", .layers = {}, .run = first}, {.name = "second", .layers = {}, .run = second}}, ranks,
      {.stages = {{0, 1}, {1, 2}}});
  const auto input = [](int64_t micro) { return at::full({micro + 1, 2}, static_cast<double>(micro), at::kFloat); };
  engine.learn_shapes({input(0), {}});
  is_learning = false;
  passes = 0;
  std::vector<int64_t> done;
  engine.forward(parallel::PipelineForward{.micros = kMicros,
                                           .samples = [](int64_t micro) { return micro + 1; },
                                           .batch =
                                               [&](int64_t micro) {
                                                 return parallel::PipelineBatch{input(micro), {}};
                                               },
                                           .on_output =
                                               [&](int64_t micro, const at::Tensor& output) {
                                                 EXPECT_TRUE(at::equal(output, (input(micro) + 1) * 2));
                                                 done.push_back(micro);
                                               }});
  EXPECT_EQ(done.size(), engine.has_output() ? 3U : 0U);
});

// Gradients of weights that wait are the same sums, rounded elsewhere: biases are added apart.
const parallel::RankTest kPipedZeroBubble("pipeline_zero_bubble", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = pipeline_config(root);
  config.optimizer.optimizer = "SGD";
  TinySteps plain(config, nullptr);
  config.parallel.pipeline_parallel = connection.world_size();
  config.parallel.pipeline_schedule = PipelineSchedule::ZeroBubble;
  TinySteps piped(config, nullptr, ranks_of(connection));
  for (int64_t step = 0; step < kPipelineSteps; ++step) {
    const StepRecord want = plain.next(), got = piped.next();
    EXPECT_TRUE(tests::close(got.loss.item<float>(), want.loss.item<float>(), kFp32, 64));
    EXPECT_TRUE(tests::close(got.gradient.norm.item<float>(), want.gradient.norm.item<float>(), kFp32, 256));
  }
  for (const parallel::ParamRow& row : piped.setup().table.rows()) {
    const at::Tensor& wanted = plain.setup().table.at(row.name).local;
    const double scale = std::max(1.0, wanted.abs().max().item<double>());
    EXPECT_TRUE(tests::rounds_to((row.local - wanted).abs().max().item<double>(), 0, scale, kFp32, 16)) << row.name;
  }
  EXPECT_EQ(piped.setup().pipeline->most_held(), connection.world_size());
});

// Of a layer that tensor parallelism has split the matmul waits, and nothing that is sent: the numbers are those of whole passes.
const parallel::RankTest kPipedZeroBubbleOfTp("pipeline_zero_bubble_of_tp", [](parallel::Connection& connection) {
  const ScratchFolder root;
  for (const bool has_parts_of_tokens : {false, true}) {
    SCOPED_TRACE(has_parts_of_tokens);
    config::RunConfig config = pipeline_config(root);
    config.parallel.pipeline_parallel = 2;
    config.parallel.tensor_parallel = 2;
    config.parallel.sequence_parallel = has_parts_of_tokens;
    config.precision.amp_mode = has_parts_of_tokens ? config::AmpMode::Bf16 : config::AmpMode::None;
    TinySteps whole(config, nullptr, ranks_of(connection));
    config.parallel.pipeline_schedule = PipelineSchedule::ZeroBubble;
    TinySteps halves(config, nullptr, ranks_of(connection));
    for (int64_t step = 0; step < kPipelineSteps; ++step) {
      const StepRecord want = whole.next(), got = halves.next();
      EXPECT_TRUE(at::equal(got.loss, want.loss)) << got.loss.item<float>() << " " << want.loss.item<float>();
    }
    expect_own_rows_equal(halves, whole);
  }
});

TEST(PipelineSteps, FillThePipelineWithForwardPassesAlone) { parallel::run_on_ranks("pipeline_forward", 2); }
TEST(PipelineSteps, LetGradientsOfWeightsWait) { parallel::run_on_ranks("pipeline_zero_bubble", 2); }
TEST(PipelineSteps, LetGradientsOfWeightsWaitInFourStages) { parallel::run_on_ranks("pipeline_zero_bubble", 4); }
TEST(PipelineSteps, LetGradientsOfSplitWeightsWait) { parallel::run_on_ranks("pipeline_zero_bubble_of_tp", 4); }
TEST(PipelineSteps, HaveTheBitsOfOneProcess) { parallel::run_on_ranks("pipeline_steps", 2); }
TEST(PipelineSteps, GoThroughFourStages) { parallel::run_on_ranks("pipeline_of_four", 4); }
TEST(PipelineSteps, GoBesideEveryOtherAxis) { parallel::run_on_ranks("pipeline_beside_axes", 4, 120); }
TEST(PipelineSteps, AreSkippedByAll) { parallel::run_on_ranks("pipeline_nonfinite", 2); }
TEST(PipelineSteps, AreClippedByTheNormOfAllStages) { parallel::run_on_ranks("pipeline_clipping", 4); }
TEST(PipelineSteps, HoldTheActivationsThatTheScheduleSays) { parallel::run_on_ranks("pipeline_held", 2); }
TEST(PipelineSteps, SaveTheFilesOfOneProcess) { parallel::run_on_ranks("pipeline_checkpoint", 2); }
TEST(PipelineSteps, SaveWhatTensorParallelismHasSplit) { parallel::run_on_ranks("pipeline_checkpoint", 4); }

}  // namespace
}  // namespace welkin::train
