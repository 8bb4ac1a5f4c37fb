// SPDX-License-Identifier: Apache-2.0
// `activation_checkpointing`: which sites of a model keep their inputs alone (ops/base/recompute.h).
#pragma once

#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "model/base/model.h"
#include "parallel/shard/param_table.h"

namespace welkin::train {

// The sites that the configuration names, in the order of the forward pass; none of a budget, which is measured. A site that
// another chosen one holds is left out: it runs again with that one, once. ConfigError where the model has no such sites, or
// fewer than the blocks that are asked for.
std::vector<model::Site*> sites_to_run_again(model::Model& model, const config::RunConfig& config);

// Those of these names.
std::vector<model::Site*> sites_named(model::Model& model, const std::vector<std::string>& names);

// Surrounds what a plan for tensor or context parallelism has installed, whose collectives are then called in the backward pass
// again, in the same order by every rank. `table` is the model's.
void run_again(const std::vector<model::Site*>& sites, const parallel::ParamTable& table);

// The leaves that the site's work reads.
std::vector<at::Tensor> weights_at(const model::Site& site, const parallel::ParamTable& table);

// Both at once.
void checkpoint_activations(model::Model& model, const parallel::ParamTable& table, const config::RunConfig& config);

// Whether `activation_checkpointing: blocks` has something to run again.
bool has_blocks(model::Model& model);

// "blocks.#.attn": what equal sites have in common.
std::string kind_of_name(const std::string& name);

}  // namespace welkin::train
