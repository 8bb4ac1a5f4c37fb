// SPDX-License-Identifier: Apache-2.0
// Tied weights that stages of a pipeline have copies of: the steps of one process under every schedule and layout, copies that
// stay equal, checkpoints that hold them once.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "layout_ranks.h"
#include "number_close.h"
#include "parallel/comm/collectives.h"
#include "parallel/shard/model_parallel_gradients.h"
#include "rank_processes.h"
#include "sharded_state.h"
#include "tied_model.h"
#include "tiny_ranks.h"
#include "train/checkpoint/shared_checkpoint.h"
#include "verify/layouts/layout_check.h"

namespace welkin::train {
namespace {

using config::PipelineSchedule;
using config::ShardStage;

constexpr std::array kTiedSchedules{PipelineSchedule::GPipe, PipelineSchedule::OneForwardOneBackward,
                                    PipelineSchedule::Interleaved, PipelineSchedule::ZeroBubble};
constexpr std::array kTiedStates{ShardStage::Optimizer, ShardStage::Gradients, ShardStage::Full};

// In float64: loss, gradients and the weights after clipped steps.
void expect_one_process(parallel::Connection& connection, const std::vector<verify::LayoutCase>& cases) {
  const verify::LayoutRanks ranks = tests::layout_ranks(connection);
  const auto reports = check_layouts({tests::tied_model(), {tests::tied_plan}}, ranks, cases, {});
  ASSERT_EQ(reports.size(), cases.size());
  for (const verify::LayoutReport& report : reports) {
    EXPECT_TRUE(report.passed()) << report.layout.text() << ": " << report.worst_name << " is off by " << report.worst;
  }
}

const parallel::RankTest kTiedOnTwo("tied_layouts_on_two", [](parallel::Connection& connection) {
  std::vector<verify::LayoutCase> cases;
  for (const ShardStage stage : kTiedStates) {  // without a pipeline: a weight that is read at two sites
    cases.push_back({.sizes = {.dp_replicate = 2}, .num_micro = 2, .shard = stage, .depth = 4});
  }
  for (const PipelineSchedule schedule : kTiedSchedules) {
    cases.push_back({.sizes = {.pp = 2}, .num_micro = 4, .schedule = schedule, .depth = 4});
    cases.push_back({.sizes = {.pp = 2}, .num_micro = 4, .schedule = schedule, .depth = 4, .steps = 3});
  }
  expect_one_process(connection, cases);
});

const parallel::RankTest kTiedOnFour("tied_layouts_on_four", [](parallel::Connection& connection) {
  std::vector<verify::LayoutCase> cases;
  for (const PipelineSchedule schedule : kTiedSchedules) {
    verify::LayoutCase c{.sizes = {.dp_replicate = 2, .pp = 2}, .num_micro = 4, .schedule = schedule, .depth = 4};
    cases.push_back(c);
    for (const ShardStage stage : kTiedStates) {
      c.shard = stage;
      cases.push_back(c);
    }
    c.steps = 2;
    cases.push_back(c);
    verify::LayoutCase tensors{.sizes = {.tp = 2, .pp = 2}, .num_micro = 4, .schedule = schedule, .depth = 4};
    cases.push_back(tensors);
    tensors.options.sequence_parallel = true;
    cases.push_back(tensors);
    if (schedule == PipelineSchedule::Interleaved) continue;                                  // of four ranks: eight blocks
    cases.push_back({.sizes = {.pp = 4}, .num_micro = 4, .schedule = schedule, .depth = 4});  // some ranks hold copies
  }
  verify::LayoutCase tokens{.sizes = {.cp = 2, .pp = 2}, .num_micro = 4, .depth = 4};
  cases.push_back(tokens);
  tokens.options.sharded_io = true;
  cases.push_back(tokens);
  tokens.shard = ShardStage::Full;
  cases.push_back(tokens);
  expect_one_process(connection, cases);
});

config::RunConfig tied_config(const ScratchFolder& root) {
  config::RunConfig config = tiny_config(root.path());
  config.model.model = "tied";
  config.model.depth = 4;
  config.loop.micro_batch_size = 1;
  return config;
}

TinySteps steps_of(const config::RunConfig& config, const TinyRanks& ranks = {}) {
  return TinySteps(config, nullptr, ranks, tests::add_tied_model);
}

// What the stages of this rank have.
void expect_close_states(TinySteps& got, TinySteps& wanted) {
  const auto found = whole_state(got), expected = whole_state(wanted);
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, value] : expected) {
    const auto is_here = [&name](const parallel::ParamRow& row) { return name.ends_with(row.name); };
    if (std::ranges::none_of(got.setup().table.rows(), is_here)) continue;
    const double scale = std::max(1.0, value.abs().max().item<double>());
    const double difference = (found.at(name) - value).abs().max().item<double>();
    EXPECT_TRUE(tests::rounds_to(difference, 0, scale, kFp32, 16)) << name << " " << difference;
  }
}

// Bit for bit.
void expect_equal_copies(TinySteps& steps) {
  steps.setup().data_parallel->complete_weights();
  parallel::check_replicas(steps.setup().table, steps.setup().layout.groups, "after the steps");
  std::map<std::string, parallel::Group> holders;
  for (const parallel::ParamRow& row : steps.setup().table.rows()) holders[row.name] = row.holders;
  for (const CheckpointGroup& group : groups_of(steps)) {
    for (const CheckpointTensor& tensor : group.tensors) {
      for (const char* tied : {"mix.weight", "mix.bias", "lift.weight"}) {
        if (!tensor.name.ends_with(tied) || tensor.value.numel() == 0) continue;
        const at::Tensor first = tensor.value.detach().clone();
        parallel::broadcast(holders.at(tied), first, 0);
        EXPECT_TRUE(at::equal(tensor.value, first)) << group.name << " " << tensor.name;
      }
    }
  }
}

void expect_steps_of_one(const config::RunConfig& alone, const config::RunConfig& piped, const TinyRanks& ranks) {
  TinySteps wanted = steps_of(alone), got = steps_of(piped, ranks);
  EXPECT_EQ(got.setup().table.num_parameters(), wanted.setup().table.num_parameters());
  for (int64_t step = 0; step < 5; ++step) {  // the third has three samples of four
    const StepRecord want = wanted.next(), found = got.next();
    EXPECT_EQ(found.num_samples, want.num_samples);
    EXPECT_TRUE(tests::close(found.loss.item<float>(), want.loss.item<float>(), kFp32, 64));
    EXPECT_TRUE(tests::close(found.gradient.norm.item<float>(), want.gradient.norm.item<float>(), kFp32, 256));
    EXPECT_TRUE(tests::close(found.gradient.scale.item<float>(), want.gradient.scale.item<float>(), kFp32, 256));
    EXPECT_TRUE(at::equal(found.gradient.found_inf, want.gradient.found_inf));
  }
  expect_equal_copies(got);
  expect_close_states(got, wanted);
}

// Clipping acts, and counts a tied weight once: with momentum and decay, an average, and gradients that add up.
const parallel::RankTest kTiedSteps("tied_steps", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig alone = tied_config(root);
  alone.optimizer.optimizer = "SGD";
  alone.optimizer.weight_decay = 0.1;
  alone.optimizer.clip_norm = 0.05;
  alone.optimizer.ema_decay = 0.5;
  for (const PipelineSchedule schedule : kTiedSchedules) {
    config::RunConfig piped = alone;
    piped.parallel.pipeline_parallel = 2;
    piped.parallel.pipeline_schedule = schedule;
    SCOPED_TRACE(config::name_of(schedule));
    expect_steps_of_one(alone, piped, ranks_of(connection));
    if (connection.world_size() == 2) continue;
    for (const ShardStage stage : kTiedStates) {
      SCOPED_TRACE(config::name_of(stage));
      piped.parallel.shard = stage;
      expect_steps_of_one(alone, piped, ranks_of(connection));
    }
  }
});

// What every copy does by itself is the same to the last bit.
const parallel::RankTest kTiedOptimizers("tied_optimizers", [](parallel::Connection& connection) {
  const ScratchFolder root;
  for (const char* name : {"Adam", "AdamW", "Lion", "LAMB", "LARS", "Adafactor", "Muon"}) {
    SCOPED_TRACE(name);
    config::RunConfig config = tied_config(root);
    config.optimizer.optimizer = name;
    config.optimizer.weight_decay = 0.1;
    config.optimizer.ema_decay = 0.5;
    config.precision.amp_mode = config::AmpMode::Fp16;  // with loss scaling
    config.parallel.pipeline_parallel = connection.world_size();
    TinySteps steps = steps_of(config, ranks_of(connection));
    for (int64_t step = 0; step < 4; ++step) steps.next();
    expect_equal_copies(steps);
  }
});

// Copies that are in memory only while a stage works with them, also where a rank's next stage does.
const parallel::RankTest kTiedOffloaded("tied_offloaded", [](parallel::Connection& connection) {
  const ScratchFolder root;
  for (const PipelineSchedule schedule :
       {PipelineSchedule::OneForwardOneBackward, PipelineSchedule::Interleaved, PipelineSchedule::ZeroBubble}) {
    SCOPED_TRACE(config::name_of(schedule));
    config::RunConfig config = tied_config(root);
    config.parallel.pipeline_parallel = 2;
    config.parallel.pipeline_schedule = schedule;
    config.optimizer.clip_norm = 0.05;
    TinySteps held = steps_of(config, ranks_of(connection));
    config.backend.offload = {"parameters", "optimizer"};
    config.backend.offload_path = (root / "offload").string();
    TinySteps offloaded = steps_of(config, ranks_of(connection));
    for (int64_t step = 0; step < 4; ++step) {
      const StepRecord wanted = held.next(), got = offloaded.next();
      EXPECT_TRUE(at::equal(got.loss, wanted.loss)) << got.loss.item<float>() << " " << wanted.loss.item<float>();
      EXPECT_TRUE(at::equal(got.gradient.norm, wanted.gradient.norm));
    }
    for (const parallel::ParamRow& row : offloaded.setup().table.rows()) {
      EXPECT_EQ(row.held_bytes(), 0) << row.name;
      EXPECT_TRUE(at::equal(row.read(), held.setup().table.at(row.name).local)) << row.name;
    }
    parallel::check_replicas(offloaded.setup().table, offloaded.setup().layout.groups, "after the steps");
  }
});

// A checkpoint holds a tied weight once, whoever has written it, and any layout goes on with it.
const parallel::RankTest kTiedMoved("tied_checkpoint", [](parallel::Connection& connection) {
  const ScratchFolder root;
  const parallel::Group world = ranks_of(connection).world_group;
  config::RunConfig alone = tied_config(root);
  alone.optimizer.optimizer = "SGD";
  alone.optimizer.clip_norm = 0.05;
  alone.optimizer.ema_decay = 0.5;
  TinySteps wanted = steps_of(alone);
  for (int64_t step = 0; step < 2; ++step) wanted.next();
  config::RunConfig piped = alone;
  piped.parallel.pipeline_parallel = 2;
  for (const ShardStage stage : {ShardStage::None, ShardStage::Optimizer, ShardStage::Full}) {
    if (connection.world_size() == 2 && stage != ShardStage::None) continue;
    SCOPED_TRACE(config::name_of(stage));
    piped.parallel.shard = stage;
    TinySteps saved = steps_of(piped, ranks_of(connection));
    for (int64_t step = 0; step < 2; ++step) saved.next();
    const std::filesystem::path folder =
        std::filesystem::path(parallel::rank_scratch_folder()) / cat("stage_", static_cast<int>(stage)) / "step_2";
    if (stage == ShardStage::None) {
      WholeGroups whole(groups_of(saved), layout_of(saved));
      if (connection.rank() == 0) std::filesystem::create_directories(folder.parent_path());
      if (connection.rank() == 0) write_checkpoint(folder, CheckpointIndex{}, whole.groups());
      whole.join_others();
    } else {
      write_shared_checkpoint(world, folder, own_tensors(groups_of(saved), layout_of(saved)),
                              [] { return std::optional(CheckpointIndex{}); });
    }
    parallel::barrier(world);
    EXPECT_FALSE(Checkpoint(folder).contains("mix_again.weight"));
    const auto read = [&](TinySteps& steps) {
      for (const CheckpointGroup& group : groups_of(steps)) read_parts(Checkpoint(folder), group, layout_of(steps));
    };
    TinySteps one = steps_of(alone);
    read(one);
    expect_close_states(one, wanted);
    for (const PipelineSchedule schedule : {PipelineSchedule::Interleaved, PipelineSchedule::ZeroBubble}) {
      config::RunConfig other = piped;
      other.parallel.pipeline_schedule = schedule;
      TinySteps moved = steps_of(other, ranks_of(connection));
      read(moved);
      expect_equal_copies(moved);
      expect_close_states(moved, one);
    }
  }
});

const parallel::RankTest kTiedDrift("tied_drift", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = tied_config(root);
  config.parallel.pipeline_parallel = 2;
  TinySteps steps = steps_of(config, ranks_of(connection));
  if (connection.rank() == 1) {
    const at::NoGradGuard no_grad;
    steps.setup().table.at("lift.weight").local.view({-1})[3] += 1e-6;
  }
  try {
    parallel::check_replicas(steps.setup().table, steps.setup().layout.groups, "at step 7");
    FAIL() << "copies differ";
  } catch (const CommError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("differ at step 7: parameter=lift.weight, ranks=[0, 1], of which nobody"));
  }
});

TEST(TiedStages, HaveTheStepsOfOneProcessOnTwoRanks) { parallel::run_on_ranks("tied_layouts_on_two", 2, 120); }
TEST(TiedStages, HaveTheStepsOfOneProcessOnFourRanks) { parallel::run_on_ranks("tied_layouts_on_four", 4, 240); }
TEST(TiedStages, AreClippedOnceAndStayEqual) { parallel::run_on_ranks("tied_steps", 2, 120); }
TEST(TiedStages, AreClippedOnceAndStayEqualWhereStatesAreShared) { parallel::run_on_ranks("tied_steps", 4, 240); }
TEST(TiedStages, AreUpdatedAlikeByEveryOptimizer) { parallel::run_on_ranks("tied_optimizers", 2, 120); }
TEST(TiedStages, MayBeOffloaded) { parallel::run_on_ranks("tied_offloaded", 2, 120); }
TEST(TiedStages, StandInACheckpointOnce) { parallel::run_on_ranks("tied_checkpoint", 2, 120); }
TEST(TiedStages, StandInACheckpointOnceWhereStatesAreShared) { parallel::run_on_ranks("tied_checkpoint", 4, 180); }
TEST(TiedStages, ACopyThatDriftsIsNamed) { parallel::run_on_ranks("tied_drift", 2); }

}  // namespace
}  // namespace welkin::train
