// SPDX-License-Identifier: Apache-2.0
// What a training step works on, made from a configuration in the order of the functions below: by the trainer, and by what
// measures steps without one. It knows no data pipeline, no folder and no log.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <memory>
#include <optional>
#include <string>

#include "data/sample/dataset.h"
#include "model/base/model.h"
#include "parallel/comm/mesh_groups.h"
#include "parallel/comm/tree_sum.h"
#include "parallel/comm/world.h"
#include "parallel/plans/plan.h"
#include "parallel/shard/data_parallel.h"
#include "parallel/shard/param_table.h"
#include "train/learn/loss.h"
#include "train/learn/optimizer.h"
#include "train/learn/precision.h"
#include "train/learn/rate_table.h"
#include "train/learn/registries.h"
#include "train/learn/sample_share.h"
#include "train/learn/schedule.h"

namespace welkin::train {

struct StepParts {
  parallel::MeshGroups groups;
  parallel::Group replicas;            // ranks that train the same weights on different samples
  std::optional<parallel::Plan> plan;  // how tp and cp split the model; nothing where both are 1
  std::string context_note;            // why the plan exchanges keys and values as it does, where that was left to it
  SampleShare share;                   // what of each sample this rank reads
  parallel::Group exchange;            // ranks whose gradients the exchange averages: replicas, and those that share samples

  model::ModelPtr model;
  parallel::ParamTable table;  // the model's parameters
  std::unique_ptr<parallel::DataParallel> data_parallel;
  std::unique_ptr<parallel::TreeSum> unit_sum;  // rank_invariant, in the place of data_parallel's exchange
  LossPtr loss;

  OptimizerPtr optimizer;
  std::unique_ptr<LossScaler> scaler;
  std::unique_ptr<RateTable> rates;
  at::Tensor counter;  // () int64 on the device: steps done, which keys dropout
};

// What the parts are made from. All of it outlives them.
struct StepSource {
  const config::RunConfig& config;
  const Registries& registries;
  const data::SampleSpec& spec;
  c10::Device device = c10::kCPU;
};

// Groups and replicas. Every rank calls it; `make` is Connection::make_group or World::group.
void place_ranks(StepParts& parts, const config::ParallelConfig& config, const parallel::MakeGroup& make, int64_t rank,
                 int64_t world_size);

// The plan, and what of the samples it lets this rank read. ConfigError for what does not divide, and for a model without one.
void plan_layout(StepParts& parts, const StepSource& source);

// Model, table, exchange of gradients, loss. The model is in training mode, with its initial weights.
void build_model(StepParts& parts, const StepSource& source);

// Optimizer, scaler, rates, counter.
void build_optimizer(StepParts& parts, const StepSource& source, const RunLength& length);

}  // namespace welkin::train
