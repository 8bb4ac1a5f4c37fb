// SPDX-License-Identifier: Apache-2.0
// Where the training state cannot be shared out, and where there is nothing to share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tiny_steps.h"

namespace welkin::train {
namespace {

std::string refusal_of(void (*change)(config::RunConfig&)) {
  const ScratchFolder root;
  config::RunConfig config = tiny_config(root.path());
  config.loop.micro_batch_size = 2;
  config.parallel.shard = config::ShardStage::Full;
  change(config);
  try {
    TinySteps(config, nullptr);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

TEST(Sharding, IsRefusedWithWhatNeedsWholeStates) {
  EXPECT_THAT(refusal_of([](config::RunConfig& c) { c.parallel.rank_invariant = true; }),
              testing::HasSubstr(
                  "cannot be shared out here: shard=full, rank_invariant=true. Leave rank_invariant out, or take shard: none"));
  EXPECT_THAT(refusal_of([](config::RunConfig& c) { c.parallel.noddp = true; }), testing::HasSubstr("noddp=true"));
  EXPECT_THAT(refusal_of([](config::RunConfig& c) { c.parallel.static_graph = true; }), testing::HasSubstr("static_graph=true"));
  EXPECT_THAT(refusal_of([](config::RunConfig& c) { c.parallel.disable_broadcast_buffers = true; }),
              testing::HasSubstr("disable_broadcast_buffers=true"));
  EXPECT_THAT(refusal_of([](config::RunConfig& c) { c.backend.cuda_graph = true; }), testing::HasSubstr("cuda_graph=true"));
}

TEST(Sharding, WantsGroupsThatDivide) {
  config::ParallelConfig config;
  config.tensor_parallel = 2;
  config.shard = config::ShardStage::Optimizer;
  config.shard_group = "4";
  EXPECT_EQ(parallel::mesh_of(config, 16).size(parallel::Axis::DpShard), 4);
  EXPECT_EQ(parallel::mesh_of(config, 16).size(parallel::Axis::DpReplicate), 2);
  config.shard_group = "node";
  EXPECT_EQ(parallel::mesh_of(config, 16).size(parallel::Axis::DpShard), 8);
  EXPECT_EQ(parallel::mesh_of(config, 16, 8).size(parallel::Axis::DpShard), 4);
  EXPECT_EQ(parallel::mesh_of(config, 16, 2).size(parallel::Axis::DpShard), 1);
  EXPECT_THROW(parallel::mesh_of(config, 16, 6), ConfigError);
  config.shard_group = "all";
  EXPECT_EQ(parallel::mesh_of(config, 16).size(parallel::Axis::DpShard), 8);
  for (const char* wrong : {"3", "0", "-1", "16", "some", ""}) {
    config.shard_group = wrong;
    EXPECT_THROW(parallel::mesh_of(config, 16), ConfigError) << wrong;
  }
  config.shard = config::ShardStage::None;
  EXPECT_EQ(parallel::mesh_of(config, 16).size(parallel::Axis::DpShard), 1);
}

// One rank keeps all, as without the key.
TEST(Sharding, OfOneRankIsNone) {
  const ScratchFolder root;
  config::RunConfig config = tiny_config(root.path());
  config.loop.micro_batch_size = 2;
  TinySteps plain(config, nullptr);
  config.parallel.shard = config::ShardStage::Full;
  TinySteps sharded(config, nullptr);
  EXPECT_THAT(sharded.setup().layout.shard_note, testing::HasSubstr("there is one data-parallel rank"));
  EXPECT_FALSE(sharded.setup().is_sharded());
  for (int64_t step = 0; step < 2; ++step) expect_equal_steps(sharded.next(), plain.next(), step);
  expect_equal_runs(sharded, plain);
}

}  // namespace
}  // namespace welkin::train
