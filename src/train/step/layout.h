// SPDX-License-Identifier: Apache-2.0
// Where a rank stands among the others, and what of the model and of each sample it has. It is known before a model is built, so
// that data can be opened for it. It knows no data pipeline and no optimizer.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/sample/dataset.h"
#include "parallel/comm/mesh_groups.h"
#include "parallel/comm/world.h"
#include "parallel/pipeline/stage_cut.h"
#include "parallel/pipeline/tied_stages.h"
#include "parallel/plans/plan.h"
#include "parallel/sharding/sharded_gradients.h"
#include "train/learn/registries.h"
#include "train/learn/sample_shard.h"

namespace welkin::train {

// Groups along the axes of the configured mesh. Every rank calls it. ConfigError for sizes that do not divide the ranks.
parallel::MeshGroups make_mesh_groups(const config::ParallelConfig& config, const parallel::World& world);

// What a layout and a set-up are made from. All of it outlives them.
struct SetupSource {
  const config::RunConfig& config;
  const Registries& registries;
  const data::SampleSpec& spec;
  c10::Device device = c10::kCPU;
  parallel::Group world_group{};  // all ranks of the run, which agree on an attention back end
  int64_t buffer_bytes = 0;       // of batches that were made before: an error of memory names them
  int64_t later_bytes = 0;        // on the device, of what is made afterwards and stays during steps: a budget counts them
};

struct Layout {
  parallel::MeshGroups groups;
  parallel::Group replicas;            // ranks that train the same weights on different samples
  std::optional<parallel::Plan> plan;  // how tensor, context and spatial parallelism split the model; nothing where all are 1
  std::string context_note;            // why the plan exchanges keys and values as it does, where that was left to it
  SampleShard shard;                   // what of each sample this rank reads
  parallel::Group exchange;            // ranks whose gradients are averaged: replicas, and those that share samples
  parallel::ShardGroups sharding;      // of the exchange: who shares out one training state (key `shard`), and who has the same
  std::string shard_note;              // where `shard` has nothing to do
  std::vector<parallel::StageRange> stages;  // of the model's segments, where a pipeline cuts it; empty where none does
  std::vector<parallel::TiedStages> tied;    // of them, this rank among those that work with the same parameters
  std::vector<int64_t> input_readers;        // ranks of the pipeline that may look at the model's input
};

// ConfigError for what the layout does not divide, and for a model without a plan that needs one.
Layout make_layout(parallel::MeshGroups groups, const SetupSource& source);

// How tensor, context and spatial parallelism split the model; nothing where the mesh has none of these axes. The same errors.
std::optional<parallel::Plan> plan_of(const parallel::Mesh& mesh, const SetupSource& source);

// The same errors of a run that is only planned, as far as they need no other rank.
void check_layout(const parallel::Mesh& mesh, const SetupSource& source);

}  // namespace welkin::train
