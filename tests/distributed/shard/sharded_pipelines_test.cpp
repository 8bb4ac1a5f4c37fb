// SPDX-License-Identifier: Apache-2.0
// Pipelines whose data-parallel ranks share out the training state of their stage: the steps of plain data parallelism under
// every schedule, steps in which ranks have different numbers of micro-batches, and checkpoints that move to other layouts.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/text.h"
#include "number_close.h"
#include "parallel/comm/collectives.h"
#include "parallel/sharding/weight_units.h"
#include "rank_processes.h"
#include "sharded_state.h"
#include "tiny_ranks.h"
#include "train/checkpoint/shared_checkpoint.h"

namespace welkin::train {
namespace {

using config::PipelineSchedule;
using config::ShardStage;

constexpr std::array kSchedules{PipelineSchedule::GPipe, PipelineSchedule::OneForwardOneBackward, PipelineSchedule::Interleaved,
                                PipelineSchedule::ZeroBubble};
constexpr int64_t kSharedSteps = 5;  // the third has three samples of four: one rank has a micro-batch less

config::RunConfig shared_config(const ScratchFolder& root) {
  config::RunConfig config = tiny_config(root.path());
  config.model.depth = 4;
  config.loop.micro_batch_size = 1;
  config.parallel.pipeline_parallel = 2;
  return config;
}

void expect_close_weights(TinySteps& got, TinySteps& wanted) {
  const auto found = whole_state(got), expected = whole_state(wanted);
  for (const parallel::ParamRow& row : wanted.setup().table.rows()) {
    const at::Tensor difference = (found.at(row.name) - expected.at(row.name)).abs().max();
    const double scale = std::max(1.0, expected.at(row.name).abs().max().item<double>());
    EXPECT_TRUE(tests::rounds_to(difference.item<double>(), 0, scale, kFp32, 16)) << row.name;
  }
}

// Ranks of a stage sum their gradients once, as plain ones do, or after every micro-batch: other roundings.
void expect_plain_steps(parallel::Connection& connection, config::RunConfig config) {
  config.parallel.shard = ShardStage::None;
  TinySteps plain(config, nullptr, ranks_of(connection));
  std::vector<StepRecord> wanted;
  for (int64_t step = 0; step < kSharedSteps; ++step) wanted.push_back(plain.next());
  for (const ShardStage stage : {ShardStage::Optimizer, ShardStage::Gradients, ShardStage::Full}) {
    SCOPED_TRACE(cat(config::name_of(config.parallel.pipeline_schedule), " ", config::name_of(stage)));
    config.parallel.shard = stage;
    TinySteps shared(config, nullptr, ranks_of(connection));
    EXPECT_TRUE(shared.setup().is_sharded());
    for (const StepRecord& want : wanted) {
      const StepRecord got = shared.next();
      EXPECT_EQ(got.samples, want.samples);
      EXPECT_EQ(got.num_samples, want.num_samples);
      EXPECT_TRUE(tests::close(got.loss.item<float>(), want.loss.item<float>(), kFp32, 64));
      EXPECT_TRUE(tests::close(got.gradient.norm.item<float>(), want.gradient.norm.item<float>(), kFp32, 256));
      EXPECT_TRUE(at::equal(got.gradient.found_inf, want.gradient.found_inf));
    }
    expect_close_weights(shared, plain);
  }
}

const parallel::RankTest kSharedSteps4("sharded_pipeline_steps", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = shared_config(root);
  config.optimizer.optimizer = "SGD";  // Adam divides by its own noise where a gradient is all but zero
  config.optimizer.clip_norm = 0.5;
  for (const PipelineSchedule schedule : kSchedules) {
    config.parallel.pipeline_schedule = schedule;
    expect_plain_steps(connection, config);
  }
  config.parallel.pipeline_schedule = PipelineSchedule::OneForwardOneBackward;
  config.parallel.reshard_after_forward = false;
  config.loop.activation_checkpointing = config::CheckpointedPart::Blocks;
  config.optimizer.freeze = {"blocks.3.mlp.*", "pos_embed"};
  expect_plain_steps(connection, config);
});

const parallel::RankTest kSharedBesides("sharded_pipeline_beside_tensors", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = shared_config(root);
  config.optimizer.optimizer = "SGD";
  config.parallel.tensor_parallel = 2;
  config.parallel.sequence_parallel = true;
  expect_plain_steps(connection, config);
});

// Several steps of the model add to the gradients of a chunk, which are reduced after each pass or once.
const parallel::RankTest kSharedRollouts("sharded_pipeline_rollouts", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = shared_config(root);
  config.optimizer.optimizer = "SGD";
  config.optimizer.clip_norm = 0.5;
  config.loss.multistep = 3;
  for (const PipelineSchedule schedule : kSchedules) {
    config.parallel.pipeline_schedule = schedule;
    expect_plain_steps(connection, config);
  }
  config.parallel.pipeline_schedule = PipelineSchedule::OneForwardOneBackward;
  config.parallel.reshard_after_forward = false;
  config.loss.multistep_recompute = true;
  expect_plain_steps(connection, config);
  config.loss.multistep_gradient = config::MultistepGradient::Last;
  expect_plain_steps(connection, config);
});

struct RowBytes {
  int64_t held = 0;     // of weights
  int64_t all = 0;      // of messages in which all rows travel once
  int64_t outside = 0;  // of these, what stands outside of all sites
};

RowBytes row_bytes(TinySteps& steps) {
  parallel::ParamTable& table = steps.setup().table;
  RowBytes bytes;
  const auto message_of = [](const parallel::ParamRow& row) { return 4 * row.split.members() * row.split.longest(); };
  for (const parallel::ParamRow& row : table.rows()) {
    bytes.held += row.held_bytes();
    bytes.all += message_of(row);
  }
  for (const parallel::WeightUnit& unit : parallel::weight_units(*steps.setup().model, table)) {
    if (unit.site != nullptr) continue;
    for (const parallel::ParamRow* row : unit.rows) bytes.outside += message_of(*row);
  }
  return bytes;
}

std::map<std::string, int64_t> bytes_of_calls(parallel::Connection& connection) {
  std::map<std::string, int64_t> bytes;
  for (const parallel::CallTotal& total : connection.recorder().totals()) bytes[total.name] += total.bytes;
  return bytes;
}

// Every pass of a stage sends what its chunk has, and nothing of the rank's other chunks.
const parallel::RankTest kSharedBytes("sharded_pipeline_bytes", [](parallel::Connection& connection) {
  const ScratchFolder root;
  constexpr int64_t kMicros = 2;
  for (const PipelineSchedule schedule : kSchedules) {
    for (const ShardStage stage : {ShardStage::Optimizer, ShardStage::Gradients, ShardStage::Full}) {
      for (const bool reshards : {true, false}) {
        if (!reshards && stage != ShardStage::Full) continue;
        SCOPED_TRACE(cat(config::name_of(schedule), " ", config::name_of(stage), reshards ? "" : " gathered once"));
        config::RunConfig config = shared_config(root);
        config.parallel.pipeline_schedule = schedule;
        config.parallel.shard = stage;
        config.parallel.reshard_after_forward = reshards;
        TinySteps steps(config, nullptr, ranks_of(connection));
        const auto before = bytes_of_calls(connection);
        steps.next();
        steps.setup().data_parallel->complete_weights();
        auto sent = bytes_of_calls(connection);
        for (const auto& [name, bytes] : before) sent[name] -= bytes;
        const RowBytes rows = row_bytes(steps);
        const int64_t reduced = stage == ShardStage::Optimizer ? rows.all : kMicros * rows.all;
        const int64_t gathered = stage == ShardStage::Full && reshards ? kMicros * (2 * rows.all - rows.outside) : rows.all;
        EXPECT_EQ(sent["reduce_scatter"], reduced);
        EXPECT_EQ(sent["all_gather"], gathered);
        if (stage == ShardStage::Full) {
          EXPECT_LE(2 * rows.held, rows.all) << "pieces alone, between steps";
        }
        for (const parallel::ParamRow& row : steps.setup().table.rows()) EXPECT_FALSE(row.local.grad().defined()) << row.name;
      }
    }
  }
});

// What this rank's stage has, in `found`, whole.
void expect_own_states(const std::map<std::string, at::Tensor>& found, TinySteps& wanted) {
  const auto expected = whole_state(wanted);
  for (const parallel::ParamRow& row : wanted.setup().table.rows()) {
    EXPECT_TRUE(at::equal(found.at(row.name), expected.at(row.name))) << row.name;
    const std::string moment = cat("optimizer.exp_avg.", row.name);
    if (!expected.contains(moment)) continue;  // frozen
    EXPECT_TRUE(at::equal(found.at(moment), expected.at(moment))) << moment;
  }
}

// Each rank writes what no other has, or what no earlier stage has; any layout takes it.
const parallel::RankTest kSharedMoved("sharded_pipeline_checkpoint", [](parallel::Connection& connection) {
  const ScratchFolder root;
  const parallel::Group world = ranks_of(connection).world_group;
  for (const ShardStage stage : {ShardStage::Optimizer, ShardStage::Full}) {
    SCOPED_TRACE(config::name_of(stage));
    config::RunConfig config = shared_config(root);
    config.parallel.shard = stage;
    config.optimizer.ema_decay = 0.5;
    config.optimizer.freeze = {"blocks.3.mlp.*",
                               "pos_embed"};  // whole on every rank of their stage, one of the first, one of the last
    TinySteps saved(config, nullptr, ranks_of(connection));
    for (int64_t step = 0; step < 2; ++step) saved.next();
    const std::filesystem::path folder =
        std::filesystem::path(parallel::rank_scratch_folder()) / cat("stage_", static_cast<int>(stage)) / "step_2";
    write_shared_checkpoint(world, folder, own_tensors(groups_of(saved), layout_of(saved)),
                            [] { return std::optional(CheckpointIndex{}); });
    parallel::barrier(world);
    const auto expect_moved = [&](const config::RunConfig& other, const TinyRanks& ranks) {
      TinySteps loaded(other, nullptr, ranks);
      for (const CheckpointGroup& group : groups_of(loaded)) read_parts(Checkpoint(folder), group, layout_of(loaded));
      if (ranks.world_size == 1) return expect_own_states(whole_state(loaded), saved);
      const auto found = whole_state(loaded);
      for (const parallel::ParamRow& row : loaded.setup().table.rows()) {
        EXPECT_TRUE(at::equal(found.at(row.name), Checkpoint(folder).read(row.name))) << row.name;
      }
    };
    config.parallel.pipeline_schedule = PipelineSchedule::Interleaved;  // other stages
    config.parallel.shard = ShardStage::Optimizer;
    expect_moved(config, ranks_of(connection));
    config.parallel.pipeline_parallel = 1;
    config.parallel.shard = ShardStage::Full;
    expect_moved(config, ranks_of(connection));
    config.parallel.shard = ShardStage::None;
    expect_moved(config, TinyRanks{});
  }
});

TEST(ShardedPipelines, HaveThePlainSteps) { parallel::run_on_ranks("sharded_pipeline_steps", 4, 180); }
TEST(ShardedPipelines, HaveThePlainStepsBesideTensorParallelism) {
  parallel::run_on_ranks("sharded_pipeline_beside_tensors", 8, 180);
}
TEST(ShardedPipelines, HaveThePlainStepsOfRollouts) { parallel::run_on_ranks("sharded_pipeline_rollouts", 4, 240); }
TEST(ShardedPipelines, SendTheBytesOfTheFormulas) { parallel::run_on_ranks("sharded_pipeline_bytes", 4, 120); }
TEST(ShardedPipelines, SaveWhatAnyLayoutReads) { parallel::run_on_ranks("sharded_pipeline_checkpoint", 4, 120); }

}  // namespace
}  // namespace welkin::train
