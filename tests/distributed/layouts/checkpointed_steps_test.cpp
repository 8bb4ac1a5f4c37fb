// SPDX-License-Identifier: Apache-2.0
// Activation checkpointing under every layout: parts with collectives inside run again in the backward pass, and the steps equal
// those without, bit for bit.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <vector>

#include "probe_bed.h"
#include "rank_processes.h"
#include "tiny_ranks.h"
#include "train/recompute/activation_checkpointing.h"
#include "train/step/probe_steps.h"

namespace welkin::train {
namespace {

constexpr int64_t kSteps = 5;

config::Checkpointing by_pattern(const char* regex) {
  config::Checkpointing value(config::CheckpointedPart::Pattern);
  value.pattern = regex;
  return value;
}

config::Checkpointing within_budget(double gib) {
  config::Checkpointing value(config::CheckpointedPart::Budget);
  value.budget_gib = gib;
  return value;
}

void expect_checkpointed_steps_equal(parallel::Connection& connection, config::RunConfig config) {
  const TinyRanks ranks = ranks_of(connection);
  TinySteps plain(config, nullptr, ranks);
  std::vector<StepRecord> wanted;
  for (int64_t step = 0; step < kSteps; ++step) wanted.push_back(plain.next());
  using config::CheckpointedPart;
  const std::vector<config::Checkpointing> values{CheckpointedPart::Mlp, CheckpointedPart::Attention, CheckpointedPart::Blocks,
                                                  by_pattern("blocks\\.0|.*\\.fc1|norm")};
  for (const config::Checkpointing& value : values) {
    config.loop.activation_checkpointing = value;
    TinySteps checkpointed(config, nullptr, ranks);
    for (int64_t step = 0; step < kSteps; ++step)
      expect_equal_steps(checkpointed.next(), wanted[static_cast<size_t>(step)], step);
    expect_equal_runs(checkpointed, plain);
  }
}

// Steps of the model that run again, with what the plan has installed inside.
void expect_steps_of_the_model_equal(parallel::Connection& connection, config::RunConfig config) {
  const TinyRanks ranks = ranks_of(connection);
  config.loss.multistep = 3;
  TinySteps plain(config, nullptr, ranks);
  config.loss.multistep_recompute = true;
  TinySteps again(config, nullptr, ranks);
  for (int64_t step = 0; step < kSteps; ++step) expect_equal_steps(again.next(), plain.next(), step);
  expect_equal_runs(again, plain);
}

config::RunConfig layout_config(const ScratchFolder& root, int64_t tensor_parallel, int64_t context_parallel = 1) {
  config::RunConfig config = tiny_config(root.path());
  config.loop.micro_batch_size = 2;
  config.parallel.tensor_parallel = tensor_parallel;
  config.parallel.context_parallel = context_parallel;
  config.parallel.context_io = config::ContextIo::Gathered;  // every rank is given whole samples here
  return config;
}

const parallel::RankTest kReplicas("checkpointed_replicas", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = layout_config(root, 1);
  config.loop.micro_batch_size = 1;
  expect_checkpointed_steps_equal(connection, config);
  config.parallel.disable_broadcast_buffers = true;  // gradients live in the buckets
  config.parallel.static_graph = true;
  expect_checkpointed_steps_equal(connection, config);
  expect_steps_of_the_model_equal(connection, config);
});

const parallel::RankTest kTensorParts("checkpointed_tensor_parts", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = layout_config(root, 2);
  expect_checkpointed_steps_equal(connection, config);
  config.parallel.sequence_parallel = true;
  config.precision.amp_mode = config::AmpMode::Bf16;
  expect_checkpointed_steps_equal(connection, config);
  expect_steps_of_the_model_equal(connection, config);
});

const parallel::RankTest kContextParts("checkpointed_context_parts", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = layout_config(root, 1, 2);
  using config::ContextMode;
  for (const ContextMode mode : {ContextMode::AllGather, ContextMode::Ring, ContextMode::AllToAll}) {
    config.parallel.context_mode = mode;
    expect_checkpointed_steps_equal(connection, config);
    expect_steps_of_the_model_equal(connection, config);
  }
});

const parallel::RankTest kAllAxes("checkpointed_all_axes", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = layout_config(root, 2, 2);
  config.parallel.sequence_parallel = true;
  expect_checkpointed_steps_equal(connection, config);
  expect_checkpointed_steps_equal(connection, layout_config(root, 2));  // with two replicas
});

// Ranks that measure choose alike: the budget lies between the least and all, so that something has to run again.
const parallel::RankTest kBudget("checkpointed_budget", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = layout_config(root, 1);
  config.model.patch_size = 1;
  config.model.depth = 4;
  config.parallel.shard = config::ShardStage::Full;
  const TinyRanks ranks = ranks_of(connection);
  TinySteps plain(config, nullptr, ranks);
  config.loop.activation_checkpointing = within_budget(64);
  const auto all = static_cast<double>(TinySteps(config, nullptr, ranks).setup().predicted->peak_bytes);
  config.loop.activation_checkpointing = within_budget(0.8 * all / (int64_t{1} << 30));
  TinySteps chosen(config, nullptr, ranks);
  EXPECT_NE(chosen.setup().checkpointing_note.find(" run again; predicted "), std::string::npos)
      << chosen.setup().checkpointing_note;
  for (int64_t step = 0; step < kSteps; ++step) expect_equal_steps(chosen.next(), plain.next(), step);
});

// The U-Net's levels hold convolutions whose channels are gathered, and whose weights are.
void expect_checkpointed_levels_equal(const TinyRanks& ranks, config::RunConfig config) {
  Registries registries;
  add_builtins(registries);
  data::SampleSpec spec = boxes_spec();
  spec.input.shape = spec.target.shape = {2, 8, 8, 8};
  const SetupSource source{config, registries, spec, at::kCPU, ranks.world_group};
  const Layout layout = make_layout({ranks.make, ranks.rank, parallel::mesh_of(config.parallel, ranks.world_size)}, source);
  std::vector<std::vector<at::Tensor>> weights;
  for (const config::Checkpointing& value :
       {config::Checkpointing(), config::Checkpointing(config::CheckpointedPart::Blocks), by_pattern("levels\\.3|conv_up.*")}) {
    config.loop.activation_checkpointing = value;
    ProbeSteps steps(layout, source, kProbeLength, [&](model::Model& model, const parallel::ParamTable& table) {
      checkpoint_activations(model, table, config);
    });
    for (int step = 0; step < 2; ++step) steps.run();
    auto& now = weights.emplace_back();
    for (const parallel::ParamRow& row : steps.setup().table.rows()) now.push_back(row.trained().detach().clone());
    for (size_t i = 0; i < now.size(); ++i) EXPECT_TRUE(at::equal(now[i], weights.front()[i])) << text_of(value) << " " << i;
  }
}

const parallel::RankTest kLevels("checkpointed_levels", [](parallel::Connection& connection) {
  const TinyRanks ranks = ranks_of(connection);
  config::RunConfig config = probe_unet();
  config.loop.micro_batch_size = 1;
  config.parallel.shard = config::ShardStage::Full;
  expect_checkpointed_levels_equal(ranks, config);
  config.parallel.shard = config::ShardStage::None;
  config.parallel.tensor_parallel = 2;
  expect_checkpointed_levels_equal(ranks, config);
});

TEST(CheckpointedStepsOfRanks, EqualStepsAsTheyAreOnLevels) { parallel::run_on_ranks("checkpointed_levels", 2); }
TEST(CheckpointedStepsOfRanks, ChooseAlikeForABudget) { parallel::run_on_ranks("checkpointed_budget", 2); }
TEST(CheckpointedStepsOfRanks, EqualStepsAsTheyAreOnReplicas) { parallel::run_on_ranks("checkpointed_replicas", 2); }
TEST(CheckpointedStepsOfRanks, EqualStepsAsTheyAreOnTensorParts) { parallel::run_on_ranks("checkpointed_tensor_parts", 2); }
TEST(CheckpointedStepsOfRanks, EqualStepsAsTheyAreOnContextParts) { parallel::run_on_ranks("checkpointed_context_parts", 2); }
TEST(CheckpointedStepsOfRanks, EqualStepsAsTheyAreOnAllAxes) { parallel::run_on_ranks("checkpointed_all_axes", 4); }

}  // namespace
}  // namespace welkin::train
