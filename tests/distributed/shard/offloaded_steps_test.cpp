// SPDX-License-Identifier: Apache-2.0
// Training steps whose states are in a file of each rank: the same bits as with states in memory, whole or shared out, and
// checkpoints that go back and forth.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/comm/collectives.h"
#include "rank_processes.h"
#include "tiny_ranks.h"
#include "train/checkpoint/whole_tensors.h"
#include "train/step/model_setup.h"

namespace welkin::train {
namespace {

using config::ShardStage;

config::RunConfig offloaded_config(const ScratchFolder& root) {
  config::RunConfig config = tiny_config(root.path());
  config.model.embed_dim = 64;
  config.model.patch_size = 1;  // activations that are worth a place
  config.loop.micro_batch_size = 4;
  config.optimizer.ema_decay = 0.5;
  config.precision.amp_mode = config::AmpMode::Fp16;  // with loss scaling
  return config;
}

void offload_all(config::RunConfig& config, const ScratchFolder& root) {
  config.backend.offload = {"optimizer", "activations"};
  config.backend.offload_path = (root / "offload").string();
  config.backend.offload_buffer_mib = 0.13;  // a piece of the kernels
}

TensorLayout layout_of_steps(TinySteps& steps) {
  const TrainSetup& setup = steps.setup();
  return {setup.table, setup.layout.groups, setup.layout.sharding.shards};
}

std::vector<CheckpointGroup> kept_groups(TinySteps& steps) {
  steps.setup().data_parallel->complete_weights();
  std::vector<CheckpointGroup> groups{model_group(steps.setup().table, *steps.setup().model)};
  const auto add = [&groups](const std::string& name, const std::vector<NamedState>& states) {
    groups.push_back({.name = name, .tensors = {}});
    for (const NamedState& state : states) {
      groups.back().tensors.push_back(
          {.name = state.name, .value = state.value, .run = state.run, .fetch = state.read, .store = state.write});
    }
  };
  add("optimizer", steps.setup().optimizer->states());
  add("average", steps.setup().weight_average->states());
  return groups;
}

// Whole, under their names; of a pipeline's rank what its stages have. Every rank calls it.
std::map<std::string, at::Tensor> kept_state(TinySteps& steps) {
  std::map<std::string, at::Tensor> all;
  for (const CheckpointGroup& group : kept_groups(steps)) {
    for (const CheckpointTensor& tensor : gather_whole(group, layout_of_steps(steps)).tensors) {
      all[stored_name(group.name, tensor.name)] = tensor.value.detach().clone();
    }
  }
  return all;
}

void expect_equal_state(const std::map<std::string, at::Tensor>& got, const std::map<std::string, at::Tensor>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (const auto& [name, value] : wanted) EXPECT_TRUE(at::equal(got.at(name), value)) << name;
}

const parallel::RankTest kOffloaded("offloaded_steps", [](parallel::Connection& connection) {
  const ScratchFolder root;
  const TinyRanks ranks = ranks_of(connection);
  for (const char* optimizer : {"AdamW", "LAMB", "Adafactor", "Muon"}) {
    for (const ShardStage stage : {ShardStage::None, ShardStage::Optimizer, ShardStage::Full}) {
      if (std::string_view(optimizer) != "AdamW" && stage != ShardStage::Optimizer) continue;  // for what they do with pieces
      config::RunConfig config = offloaded_config(root);
      config.optimizer.optimizer = optimizer;
      config.parallel.shard = stage;
      TinySteps held(config, nullptr, ranks);
      offload_all(config, root);
      TinySteps offloaded(config, nullptr, ranks);
      int64_t units = 0;
      for (const NamedState& state : offloaded.setup().optimizer->states()) units += state.read ? 1 : 0;
      EXPECT_GT(units, 0);
      for (int64_t step = 0; step < 3; ++step) {  // the third is short
        if (step == 1) {                          // a gradient that is not finite on one rank: all skip the step
          for (TinySteps* steps : {&held, &offloaded}) {
            steps->setup().scaler->states().front().value.fill_(std::numeric_limits<float>::infinity());
          }
        }
        const StepRecord wanted = held.next(), got = offloaded.next();
        EXPECT_TRUE(at::equal(got.loss, wanted.loss)) << step;
        EXPECT_EQ(got.gradient.found_inf.item<float>(), wanted.gradient.found_inf.item<float>());
        EXPECT_EQ(got.gradient.found_inf.item<float>(), step == 1 ? 1 : 0);
        for (TinySteps* steps : {&held, &offloaded}) steps->setup().scaler->states().front().value.fill_(1024);
      }
      EXPECT_GT(offloaded.setup().activation_offload->stored_bytes(), 0);
      expect_equal_state(kept_state(offloaded), kept_state(held));
    }
  }
});

// Weights have memory while they are used, and what is kept of them for the backward pass finds them again.
const parallel::RankTest kOffloadedWeights("offloaded_weights", [](parallel::Connection& connection) {
  const ScratchFolder root;
  const TinyRanks ranks = ranks_of(connection);
  using What = std::vector<std::string>;
  for (const What& what : {What{"parameters"}, What{"parameters", "optimizer"}, What{"parameters", "optimizer", "activations"}}) {
    for (const auto& [part, stage] : {std::pair(config::CheckpointedPart::None, ShardStage::None),
                                      std::pair(config::CheckpointedPart::Blocks, ShardStage::None),
                                      std::pair(config::CheckpointedPart::None, ShardStage::Full),
                                      std::pair(config::CheckpointedPart::Blocks, ShardStage::Full)}) {
      config::RunConfig config = offloaded_config(root);
      config.loop.micro_batch_size = 2;
      config.parallel.shard = stage;
      config.loop.activation_checkpointing = part;
      config.optimizer.freeze = {"blocks.1.mlp.*"};
      TinySteps held(config, nullptr, ranks);
      offload_all(config, root);
      config.backend.offload = what;
      TinySteps offloaded(config, nullptr, ranks);
      for (int64_t step = 0; step < 4; ++step) {  // the third is short
        const StepRecord wanted = held.next(), got = offloaded.next();
        EXPECT_TRUE(at::equal(got.loss, wanted.loss)) << step;
        for (const parallel::ParamRow& row : offloaded.setup().table.rows()) EXPECT_EQ(row.held_bytes(), 0) << row.name;
      }
      expect_equal_state(kept_state(offloaded), kept_state(held));
      offloaded.setup().weight_average->swap();
      held.setup().weight_average->swap();
      expect_equal_state(kept_state(offloaded), kept_state(held));
      const at::NoGradGuard no_grad;
      const at::Tensor zeros = at::zeros({1, 2, 8, 8});
      EXPECT_TRUE(at::equal(offloaded.setup().forward_zeros(zeros), held.setup().forward_zeros(zeros)));
    }
  }
});

// Passes of a stage come long after each other, and another chunk's in between.
const parallel::RankTest kOffloadedPipelines("offloaded_pipelines", [](parallel::Connection& connection) {
  const ScratchFolder root;
  const TinyRanks ranks = ranks_of(connection);
  const ShardStage stage = connection.world_size() > 2 ? ShardStage::Full : ShardStage::None;
  for (const config::PipelineSchedule schedule : {config::PipelineSchedule::OneForwardOneBackward,
                                                  config::PipelineSchedule::Interleaved, config::PipelineSchedule::ZeroBubble}) {
    SCOPED_TRACE(config::name_of(schedule));
    config::RunConfig config = offloaded_config(root);
    config.model.depth = 4;
    config.loop.micro_batch_size = 1;
    config.parallel.pipeline_parallel = 2;
    config.parallel.pipeline_schedule = schedule;
    config.parallel.shard = stage;
    TinySteps held(config, nullptr, ranks);
    offload_all(config, root);
    const bool has_activations = schedule != config::PipelineSchedule::ZeroBubble;
    config.backend.offload = {"parameters", "optimizer"};
    if (has_activations) config.backend.offload.emplace_back("activations");
    TinySteps offloaded(config, nullptr, ranks);
    for (int64_t step = 0; step < 4; ++step) {  // the third is short
      const StepRecord wanted = held.next(), got = offloaded.next();
      EXPECT_TRUE(at::equal(got.loss, wanted.loss)) << step;
      for (const parallel::ParamRow& row : offloaded.setup().table.rows()) EXPECT_EQ(row.held_bytes(), 0) << row.name;
    }
    EXPECT_TRUE(!has_activations || offloaded.setup().activation_offload->stored_bytes() > 0);
    expect_equal_state(kept_state(offloaded), kept_state(held));
    const at::NoGradGuard no_grad;
    const at::Tensor zeros = at::zeros({1, 2, 8, 8});
    EXPECT_TRUE(at::equal(offloaded.setup().forward_zeros(zeros), held.setup().forward_zeros(zeros)));
  }
});

const parallel::RankTest kResumed("offloaded_checkpoint", [](parallel::Connection& connection) {
  const ScratchFolder root;
  const TinyRanks ranks = ranks_of(connection);
  config::RunConfig config = offloaded_config(root);
  config.parallel.shard = ShardStage::Optimizer;
  offload_all(config, root);
  TinySteps saved(config, nullptr, ranks);
  for (int64_t step = 0; step < 2; ++step) saved.next();
  const auto state = kept_state(saved);
  const std::filesystem::path folder = std::filesystem::path(parallel::rank_scratch_folder()) / "step_2";
  {
    WholeGroups whole(kept_groups(saved), layout_of_steps(saved));
    if (connection.rank() == 0) write_checkpoint(folder, CheckpointIndex{}, whole.groups());
    whole.join_others();
  }
  parallel::barrier(ranks.world_group);
  for (const bool is_offloaded : {false, true}) {
    for (const ShardStage stage : {ShardStage::None, ShardStage::Gradients, ShardStage::Full}) {
      config.parallel.shard = stage;
      config.backend.offload.clear();
      if (is_offloaded) config.backend.offload = {"optimizer", "activations"};
      if (is_offloaded && stage != ShardStage::Gradients) config.backend.offload.emplace_back("parameters");
      TinySteps loaded(config, nullptr, ranks);
      for (const CheckpointGroup& group : kept_groups(loaded)) read_parts(Checkpoint(folder), group, layout_of_steps(loaded));
      expect_equal_state(kept_state(loaded), state);
    }
  }
});

TEST(OffloadedSteps, HaveTheBitsOfStatesInMemory) { parallel::run_on_ranks("offloaded_steps", 2); }
TEST(OffloadedWeights, HaveTheBitsOfWeightsInMemory) { parallel::run_on_ranks("offloaded_weights", 2); }
TEST(OffloadedPipelines, HaveTheBitsOfWhatIsInMemory) { parallel::run_on_ranks("offloaded_pipelines", 2); }
TEST(OffloadedPipelines, HaveTheBitsOfPiecesInMemory) { parallel::run_on_ranks("offloaded_pipelines", 4); }
TEST(OffloadedCheckpoints, GoBackAndForth) { parallel::run_on_ranks("offloaded_checkpoint", 2); }

}  // namespace
}  // namespace welkin::train
