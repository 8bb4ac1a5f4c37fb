// SPDX-License-Identifier: Apache-2.0
// `activation_checkpointing`: which sites of a model keep their inputs alone (ops/base/recompute.h).
#pragma once

#include "config/schema/run_config.h"
#include "model/base/model.h"
#include "parallel/shard/param_table.h"

namespace welkin::train {

// Surrounds what a plan for tensor or context parallelism has installed, whose collectives are then called in the backward pass
// again, in the same order by every rank. `table` is the model's. ConfigError where the model has no such sites, or fewer than
// the blocks that are asked for.
void checkpoint_activations(model::Model& model, const parallel::ParamTable& table, const config::RunConfig& config);

// Whether `activation_checkpointing: blocks` has something to run again.
bool has_blocks(model::Model& model);

}  // namespace welkin::train
