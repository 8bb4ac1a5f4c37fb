// SPDX-License-Identifier: Apache-2.0
// A pipeline over a model: where it is cut, what it does not go with, and what of the model a rank keeps.
#pragma once

#include <vector>

#include "parallel/mesh/mesh.h"
#include "parallel/pipeline/stage_cut.h"
#include "train/step/layout.h"
#include "train/step/setup.h"

namespace welkin::train {

// As the configuration says, or by the costs of the model; empty where the mesh has no pipeline. ConfigError where the model
// cannot be cut so, where the schedule cannot take the micro-batches of a step, and for what a pipeline does not go with.
std::vector<parallel::StageRange> stages_of(const parallel::Mesh& mesh, const SetupSource& source);

// Makes setup.pipeline where the layout has stages, and lets go of the parameters of other ranks' stages. Every rank calls it
// when weights have their values and all sites their wrappers.
void keep_own_stages(TrainSetup& setup, const SetupSource& source);

}  // namespace welkin::train
