// SPDX-License-Identifier: Apache-2.0
// A pipeline over a model: its cuts, the options that it excludes, and the part of the model that a rank keeps.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/pipeline/pipeline.h"
#include "parallel/mesh/mesh.h"
#include "parallel/pipeline/pipeline_engine.h"
#include "parallel/pipeline/stage_cut.h"
#include "train/step/layout.h"
#include "train/step/setup.h"

namespace welkin::train {

// What the cuts of a model depend on. Nothing writes to its parameters, so they take no memory.
struct ModelOutline {
  model::ModelPtr model;
  parallel::ParamTable table;
  std::vector<model::Segment> segments;
  std::vector<double> costs;  // of the segments
};
ModelOutline outline_of(const model::ModelPtr& model, const SetupSource& source);

// The stages as configured, or by the costs of the model; empty if the mesh has no pipeline. ConfigError if the model cannot be
// cut so, if the schedule cannot take the micro-batches of a step, and for options that exclude a pipeline.
std::vector<parallel::StageRange> stages_of(const parallel::Mesh& mesh, const SetupSource& source);

// The same for forward passes alone, for which all schedules are equal: cuts the model into so many stages.
std::vector<parallel::StageRange> cut_model(const model::ModelPtr& model, const SetupSource& source, int64_t stages);

// For the same stages: the ranks that share parameters between stages. Every rank calls it, once. Empty without stages.
std::vector<parallel::TiedStages> tied_stages_of(const std::vector<parallel::StageRange>& stages,
                                                 const parallel::MeshGroups& groups, const SetupSource& source);

// For the same stages: the ranks of the pipeline that may read the model's input. Empty without stages.
std::vector<int64_t> input_readers_of(const std::vector<parallel::StageRange>& stages, int64_t ranks, const SetupSource& source);

// The queue for weight gradients that wait; installs their hooks in the model. Null if no schedule lets them wait. Called
// before a plan is applied.
std::shared_ptr<parallel::WeightQueue> defer_weights(TrainSetup& setup, const config::RunConfig& config);

// Makes setup.pipeline if the layout has stages, and frees the parameters of other ranks' stages. Every rank calls it when
// weights have their values and all sites their wrappers. `weights` is the result of defer_weights().
void keep_own_stages(TrainSetup& setup, const SetupSource& source, const std::shared_ptr<parallel::WeightQueue>& weights);

// A copy of a micro-batch: a loader's buffers are valid until the call after next, and several are under way.
data::Batch kept(const data::Batch& batch);

// One sample of zeros, which counts nowhere: if ranks make their passes together, a rank with fewer micro-batches than the
// others adds such ones. zero_batch(): with its target.
data::Batch zero_batch(const data::Batch& like, const at::Tensor& counter);
parallel::PipelineBatch zero_micro_batch(const data::Batch& like, uint64_t seed, const at::Tensor& counter);

}  // namespace welkin::train
