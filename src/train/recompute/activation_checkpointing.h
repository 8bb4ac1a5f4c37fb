// SPDX-License-Identifier: Apache-2.0
// `activation_checkpointing`: the sites of a model that keep only their inputs (ops/base/recompute.h).
#pragma once

#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "model/base/model.h"
#include "parallel/shard/param_table.h"

namespace welkin::train {

// The sites that the configuration names, in the order of the forward pass; none for a budget, which is measured. A site inside
// another chosen one is left out: it runs again with that one, once. ConfigError if the model has no such sites, or fewer than
// the blocks that are asked for.
std::vector<model::Site*> sites_to_run_again(model::Model& model, const config::RunConfig& config);

// The sites of these names.
std::vector<model::Site*> sites_named(model::Model& model, const std::vector<std::string>& names);

// Wraps the sites outside of a plan's wrappers for tensor or context parallelism. The backward pass then calls their
// collectives again, in the same order on every rank. `table` is the model's.
void run_again(const std::vector<model::Site*>& sites, const parallel::ParamTable& table);

// The leaves that the site's computation reads.
std::vector<at::Tensor> weights_at(const model::Site& site, const parallel::ParamTable& table);

// Finds the sites and wraps them.
void checkpoint_activations(model::Model& model, const parallel::ParamTable& table, const config::RunConfig& config);

// True if `activation_checkpointing: blocks` has something to run again.
bool has_blocks(model::Model& model);

// "blocks.#.attn": the common name of equal sites.
std::string kind_of_name(const std::string& name);

}  // namespace welkin::train
