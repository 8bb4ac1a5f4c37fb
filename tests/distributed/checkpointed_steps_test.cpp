// SPDX-License-Identifier: Apache-2.0
// Activation checkpointing under every layout: parts with collectives inside run again in the backward pass, and the steps equal
// those without, bit for bit.
#include <gtest/gtest.h>

#include "rank_processes.h"
#include "tiny_ranks.h"

namespace welkin::train {
namespace {

constexpr int64_t kSteps = 5;

void expect_checkpointed_steps_equal(parallel::Connection& connection, config::RunConfig config) {
  const TinyRanks ranks = ranks_of(connection);
  TinySteps plain(config, nullptr, ranks);
  std::vector<StepRecord> wanted;
  for (int64_t step = 0; step < kSteps; ++step) wanted.push_back(plain.next());
  using config::CheckpointedPart;
  for (const CheckpointedPart part : {CheckpointedPart::Mlp, CheckpointedPart::Attention, CheckpointedPart::Blocks}) {
    config.loop.activation_checkpointing = part;
    TinySteps checkpointed(config, nullptr, ranks);
    for (int64_t step = 0; step < kSteps; ++step)
      expect_equal_steps(checkpointed.next(), wanted[static_cast<size_t>(step)], step);
    expect_equal_runs(checkpointed, plain);
  }
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
});

const parallel::RankTest kTensorParts("checkpointed_tensor_parts", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = layout_config(root, 2);
  expect_checkpointed_steps_equal(connection, config);
  config.parallel.sequence_parallel = true;
  config.precision.amp_mode = config::AmpMode::Bf16;
  expect_checkpointed_steps_equal(connection, config);
});

const parallel::RankTest kContextParts("checkpointed_context_parts", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = layout_config(root, 1, 2);
  using config::ContextMode;
  for (const ContextMode mode : {ContextMode::AllGather, ContextMode::Ring, ContextMode::AllToAll}) {
    config.parallel.context_mode = mode;
    expect_checkpointed_steps_equal(connection, config);
  }
});

const parallel::RankTest kAllAxes("checkpointed_all_axes", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = layout_config(root, 2, 2);
  config.parallel.sequence_parallel = true;
  expect_checkpointed_steps_equal(connection, config);
  expect_checkpointed_steps_equal(connection, layout_config(root, 2));  // with two replicas
});

TEST(CheckpointedStepsOfRanks, EqualStepsAsTheyAreOnReplicas) { parallel::run_on_ranks("checkpointed_replicas", 2); }
TEST(CheckpointedStepsOfRanks, EqualStepsAsTheyAreOnTensorParts) { parallel::run_on_ranks("checkpointed_tensor_parts", 2); }
TEST(CheckpointedStepsOfRanks, EqualStepsAsTheyAreOnContextParts) { parallel::run_on_ranks("checkpointed_context_parts", 2); }
TEST(CheckpointedStepsOfRanks, EqualStepsAsTheyAreOnAllAxes) { parallel::run_on_ranks("checkpointed_all_axes", 4); }

}  // namespace
}  // namespace welkin::train
