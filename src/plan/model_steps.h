// SPDX-License-Identifier: Apache-2.0
// What training over several steps of a model, or of several members of an ensemble, makes of the cost of one (keys multistep,
// multistep_recompute, multistep_gradient, ensemble_members).
#pragma once

#include <cstdint>

#include "config/schema/run_config.h"
#include "plan/run_estimate.h"

namespace welkin::plan {

// Of the part of the run with most of them; 1 for boxes, which have no steps in time.
int64_t model_steps(const config::RunConfig& config);

// That a step makes of a sample; 1 for boxes.
int64_t ensemble_members(const config::RunConfig& config);

// Steps of the model whose passes through a stage are apart: those of a pipeline, all and those with a gradient. 1 elsewhere,
// where one pass goes through all.
struct StagePasses {
  double forward = 1, backward = 1;
};
StagePasses stage_passes(const config::RunConfig& config);

// The facts of a sample of so many steps and members: FLOPs of all, activations of those that have a gradient, or of one where
// they run again and all their inputs. All members are kept until the backward pass. Of a pipeline activations stay those of all
// members of one step, of which its schedule says how many a rank holds.
RunFacts of_all_steps(const config::RunConfig& config, RunFacts facts);

// FLOPs of the run over those of a run that is nothing but its part with most steps; 1 where the keys do not tell.
double run_share(const config::RunConfig& config);

}  // namespace welkin::plan
