// SPDX-License-Identifier: Apache-2.0
// The place of a rank among the others, and its part of the model and of each sample. It is known before a model is built, so
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

struct ModelOutline;  // stages.h

// The inputs of a layout and a set-up. All of them outlive both.
struct SetupSource {
  const config::RunConfig& config;
  const Registries& registries;
  const data::SampleSpec& spec;
  c10::Device device = c10::kCPU;
  parallel::Group world_group{};  // all ranks of the run, which agree on an attention back end
  int64_t buffer_bytes = 0;       // of batches that were made before: named in a memory error
  int64_t later_bytes = 0;        // on the device, of later objects that stay during steps: a budget counts them
  // Of this model, for many layouts of one; null: made for each.
  const ModelOutline* outline = nullptr;
};

struct Layout {
  parallel::MeshGroups groups;
  parallel::Group replicas;            // ranks that train the same weights on different samples
  std::optional<parallel::Plan> plan;  // how tensor, context and spatial parallelism split the model; nothing if all are 1
  std::string context_note;            // why the plan exchanges keys and values in its way, if it chose it
  SampleShard shard;                   // the part of each sample that this rank reads
  parallel::Group exchange;            // ranks whose gradients are averaged: replicas, and ranks that share samples
  parallel::ShardGroups sharding;      // in the exchange: ranks that share out one training state (key `shard`), and its copies
  std::string shard_note;              // the reason if `shard` has no effect
  std::vector<parallel::StageRange> stages;  // of the model's segments in a pipeline; empty without one
  std::vector<parallel::TiedStages> tied;    // groups of stages that use the same parameters, with this rank
  std::vector<int64_t> input_readers;        // ranks of the pipeline that may read the model's input
};

// ConfigError for sizes that the layout does not divide, and for a model without a plan that needs one.
Layout make_layout(parallel::MeshGroups groups, const SetupSource& source);

// How tensor, context and spatial parallelism split the model; nothing if the mesh has none of these axes. The same errors.
std::optional<parallel::Plan> plan_of(const parallel::Mesh& mesh, const SetupSource& source);

// Throws the same errors for a run that is only planned, those that need no other rank. Returns its stages, as in Layout.
std::vector<parallel::StageRange> checked_stages(const parallel::Mesh& mesh, const SetupSource& source);

}  // namespace welkin::train
