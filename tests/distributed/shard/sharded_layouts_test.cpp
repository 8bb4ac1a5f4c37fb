// SPDX-License-Identifier: Apache-2.0
// Every stage of sharded data parallelism against one process, in float64: alone and with tensor, sequence, context and pipeline
// parallelism, micro-batches and replicas of groups; for the transformer and the U-Net, which knows nothing of it.
#include <gtest/gtest.h>

#include "layout_ranks.h"
#include "rank_processes.h"
#include "verify/layouts/layout_check.h"

namespace welkin::verify {
namespace {

using config::ShardStage;

void expect_equal_to_one_process(parallel::Connection& connection, const char* model, const parallel::PlanEntry& plan,
                                 std::vector<LayoutCase> cases) {
  model::Registry models;
  model::add_builtin_models(models);
  const LayoutRanks ranks = tests::layout_ranks(connection);
  std::vector<LayoutCase> staged;
  for (LayoutCase& c : cases) {
    for (const ShardStage stage : {ShardStage::Optimizer, ShardStage::Gradients, ShardStage::Full}) {
      c.shard = stage;
      staged.push_back(c);
    }
  }
  for (const LayoutReport& report : check_layouts({models.at(model), plan}, ranks, staged, {})) {
    EXPECT_TRUE(report.passed()) << report.layout.text() << ": " << report.worst_name << " is off by " << report.worst;
  }
}

const parallel::RankTest kVitOnTwo("sharded_vit_on_two", [](parallel::Connection& connection) {
  LayoutCase data{.sizes = {.dp_replicate = 2}, .num_micro = 2, .dropout = 0.1};
  LayoutCase tokens{.sizes = {.cp = 2}};  // whose ranks are those that share
  tokens.options.sharded_io = true;
  expect_equal_to_one_process(connection, "vit", {parallel::vit_plan_of}, {data, tokens});
});

const parallel::RankTest kVitOnFour("sharded_vit_on_four", [](parallel::Connection& connection) {
  LayoutCase data{.sizes = {.dp_replicate = 4}};
  LayoutCase hybrid{.sizes = {.dp_replicate = 4}, .num_micro = 2, .shard_replicas = 2};
  LayoutCase tensors{.sizes = {.dp_replicate = 2, .tp = 2}, .joint_qkv = true, .num_micro = 2};
  tensors.options.sequence_parallel = true;
  LayoutCase tokens{.sizes = {.dp_replicate = 2, .cp = 2}};
  tokens.options.sharded_io = true;
  LayoutCase gathered{.sizes = {.dp_replicate = 2, .cp = 2}};
  LayoutCase piped{.sizes = {.dp_replicate = 2, .pp = 2}, .num_micro = 4, .dropout = 0.1, .depth = 4};
  LayoutCase forward_first = piped;
  forward_first.schedule = config::PipelineSchedule::GPipe;
  LayoutCase piped_tokens{.sizes = {.cp = 2, .pp = 2}, .num_micro = 4, .depth = 4};
  piped_tokens.options.sharded_io = true;
  expect_equal_to_one_process(connection, "vit", {parallel::vit_plan_of},
                              {data, hybrid, tensors, tokens, gathered, piped, forward_first, piped_tokens});
});

const parallel::RankTest kUnet("sharded_unet", [](parallel::Connection& connection) {
  std::vector<LayoutCase> cases{{.sizes = {.dp_replicate = connection.world_size()}, .num_micro = 2}};
  if (connection.world_size() == 4) cases.push_back({.sizes = {.dp_replicate = 2, .tp = 2}});
  if (connection.world_size() == 4) cases.push_back({.sizes = {.dp_replicate = 2, .pp = 2}, .num_micro = 4});
  expect_equal_to_one_process(connection, "unet3d", {parallel::unet_plan_of, parallel::Axis::Tp}, cases);
});

TEST(ShardedLayouts, OfTheVitEqualOneProcessOnTwoRanks) { parallel::run_on_ranks("sharded_vit_on_two", 2); }
TEST(ShardedLayouts, OfTheVitEqualOneProcessOnFourRanks) { parallel::run_on_ranks("sharded_vit_on_four", 4); }
TEST(ShardedLayouts, OfTheUnetEqualOneProcessOnTwoRanks) { parallel::run_on_ranks("sharded_unet", 2); }
TEST(ShardedLayouts, OfTheUnetEqualOneProcessOnFourRanks) { parallel::run_on_ranks("sharded_unet", 4); }

}  // namespace
}  // namespace welkin::verify
