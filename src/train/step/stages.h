// SPDX-License-Identifier: Apache-2.0
// A pipeline over a model: where it is cut, what it does not go with, and what of the model a rank keeps.
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

// As the configuration says, or by the costs of the model; empty where the mesh has no pipeline. ConfigError where the model
// cannot be cut so, where the schedule cannot take the micro-batches of a step, and for what a pipeline does not go with.
std::vector<parallel::StageRange> stages_of(const parallel::Mesh& mesh, const SetupSource& source);

// The same of a model for forward passes alone, which any schedule makes alike: so many stages of it.
std::vector<parallel::StageRange> cut_model(model::Model& model, const SetupSource& source, int64_t stages);

// Of the same stages, who works with parameters that those of several ranks do. Every rank calls it, once. Empty without stages.
std::vector<parallel::TiedStages> tied_stages_of(const std::vector<parallel::StageRange>& stages,
                                                 const parallel::MeshGroups& groups, const SetupSource& source);

// Of the same stages, the ranks of the pipeline that may look at the model's input. Empty without stages.
std::vector<int64_t> input_readers_of(const std::vector<parallel::StageRange>& stages, int64_t ranks, const SetupSource& source);

// Where gradients by weights wait, with what they need installed in the model; null where no schedule lets them. Before a plan is
// applied.
std::shared_ptr<parallel::WeightQueue> defer_weights(TrainSetup& setup, const config::RunConfig& config);

// Makes setup.pipeline where the layout has stages, and lets go of the parameters of other ranks' stages. Every rank calls it
// when weights have their values and all sites their wrappers. `weights`: of defer_weights().
void keep_own_stages(TrainSetup& setup, const SetupSource& source, const std::shared_ptr<parallel::WeightQueue>& weights);

// A micro-batch of its own: a loader's buffers are valid until the call after next, and several are under way.
data::Batch kept(const data::Batch& batch);

// One sample of zeros, for which nothing counts: where ranks make their passes together, one with fewer micro-batches than the
// others makes up the rest. zero_batch(): with its target.
data::Batch zero_batch(const data::Batch& like, const at::Tensor& counter);
parallel::PipelineBatch zero_micro_batch(const data::Batch& like, uint64_t seed, const at::Tensor& counter);

}  // namespace welkin::train
