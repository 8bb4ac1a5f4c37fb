// SPDX-License-Identifier: Apache-2.0
// Cost of training over several model steps, or several ensemble members, from the cost of one (keys multistep,
// multistep_recompute, multistep_gradient, ensemble_members).
#pragma once

#include <cstdint>

#include "config/schema/run_config.h"
#include "plan/run_estimate.h"

namespace welkin::plan {

// Model steps in the part of the run with most of them; 1 for boxes, which have no steps in time.
int64_t model_steps(const config::RunConfig& config);

// Members that a step makes from a sample; 1 for boxes.
int64_t ensemble_members(const config::RunConfig& config);

// Passes through a pipeline stage for all model steps: forward for all, backward for those with a gradient. 1 without pipeline,
// as one pass includes all steps.
struct StagePasses {
  double forward = 1, backward = 1;
};
StagePasses stage_passes(const config::RunConfig& config);

// The facts of a sample with all its model steps and members: FLOPs of all; activations of the steps with a gradient, or, under
// recomputation, of one step and all inputs. All members are kept until the backward pass. In a pipeline the activations stay
// those of all members of one step; its schedule gives the number that a rank holds.
RunFacts of_all_steps(const config::RunConfig& config, RunFacts facts);

// FLOPs of the run over those of a run with most model steps throughout; 1 if the keys do not determine it.
double run_share(const config::RunConfig& config);

}  // namespace welkin::plan
