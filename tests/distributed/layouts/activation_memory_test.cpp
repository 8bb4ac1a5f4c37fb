// SPDX-License-Identifier: Apache-2.0
// What a forward pass leaves for the backward pass on one rank of four, counted as tensors' bytes.
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "core/text.h"
#include "model/registry.h"
#include "parallel/plans/plans.h"
#include "rank_processes.h"
#include "train/device/memory_limit.h"

namespace welkin::train {
namespace {

constexpr int64_t kNoLimit = int64_t{1} << 40;
constexpr double kGoal = 0.3;

config::ModelConfig deep_vit(config::QkvLayout qkv) {
  config::ModelConfig config;
  config.embed_dim = 96;
  config.depth = 12;
  config.num_heads = 8;
  config.patch_size = 4;
  config.qkv = qkv;
  return config;
}

int64_t kept_bytes(model::Model& model, const model::ModelShape& shape) {
  const at::Tensor input = at::randn({1, shape.in_channels, shape.grid[0], shape.grid[1]});
  const int64_t before = cpu_memory_allocated();
  at::Tensor output = model.forward(input, {});
  const int64_t kept = cpu_memory_allocated() - before;
  output.reset();
  // A thread of the back end may hold the last message a little longer.
  EXPECT_LE(cpu_memory_allocated() - before, kept / 10) << "nothing stays without the graph";
  return kept;
}

const parallel::RankTest kSequenceParallel("activations_of_tp4_sp", [](parallel::Connection& connection) {
  limit_cpu_memory(kNoLimit);
  model::Registry models;
  model::add_builtin_models(models);
  const model::ModelShape shape{.in_channels = 3, .out_channels = 3, .grid = {64, 96}};
  const auto make = [&](const std::string& name, parallel::GroupMembers members) {
    return connection.make_group(name, std::move(members));
  };
  const parallel::MeshGroups groups(make, connection.rank(), parallel::Mesh("tp-cp-dp", {.dp_replicate = 1, .tp = 4, .cp = 1}));
  for (const config::QkvLayout qkv : {config::QkvLayout::Separate, config::QkvLayout::Joint}) {
    const config::ModelConfig config = deep_vit(qkv);
    const model::ModelPtr vit = models.at("vit").build(config, shape);
    vit->initialise(3);
    const auto whole = static_cast<double>(kept_bytes(*vit, shape));
    parallel::ParamTable table = parallel::ParamTable::of(*vit);
    parallel::apply_plan(parallel::vit_plan_of(config, shape, groups.mesh(), {.sequence_parallel = true}), *vit, table, groups);
    const auto part = static_cast<double>(kept_bytes(*vit, shape));
    EXPECT_LE(part / whole, kGoal) << cat("qkv=", name_of(qkv), ": ", part, " of ", whole, " bytes");
  }
});

TEST(ActivationMemory, FourTensorParallelRanksWithSequenceParallelKeepThreeTenths) {
  parallel::run_on_ranks("activations_of_tp4_sp", 4);
}

}  // namespace
}  // namespace welkin::train
