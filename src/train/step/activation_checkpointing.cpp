// SPDX-License-Identifier: Apache-2.0
#include "train/step/activation_checkpointing.h"

#include <ATen/core/grad_mode.h>

#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "ops/base/recompute.h"
#include "parallel/plans/plan.h"

namespace welkin::train {
namespace {

std::string pattern_of_sites(config::CheckpointedPart part) {
  if (part == config::CheckpointedPart::Blocks) return "blocks.*";
  return part == config::CheckpointedPart::Mlp ? "blocks.*.mlp" : "blocks.*.attn";
}

std::vector<model::Site*> sites_of(model::Model& model, const std::string& pattern) {
  std::vector<model::Site*> found;
  for (model::Site* site : model.sites()) {
    if (parallel::matches_pattern(pattern, site->name())) found.push_back(site);
  }
  return found;
}

std::vector<at::Tensor> weights_at(const model::Site& site, const parallel::ParamTable& table) {
  std::vector<at::Tensor> weights;
  for (const parallel::ParamRow& row : table.rows()) {
    if (row.name.starts_with(site.name() + ".")) weights.push_back(row.local);
  }
  return weights;
}

}  // namespace

bool has_blocks(model::Model& model) { return !sites_of(model, pattern_of_sites(config::CheckpointedPart::Blocks)).empty(); }

void checkpoint_activations(model::Model& model, const parallel::ParamTable& table, const config::RunConfig& config) {
  const config::CheckpointedPart part = config.loop.activation_checkpointing;
  if (part == config::CheckpointedPart::None) return;
  const std::string pattern = pattern_of_sites(part);
  std::vector<model::Site*> sites = sites_of(model, pattern);
  const auto wanted = static_cast<size_t>(config.loop.activation_checkpointing_blocks);
  if (sites.empty() || wanted > sites.size()) {
    throw ConfigError("activation_checkpointing",
                      cat(sites.empty() ? "the model has no such parts" : "the model has fewer blocks",
                          ": activation_checkpointing=", name_of(part), ", activation_checkpointing_blocks=", wanted,
                          ", model=", config.model.model, ", sites ", pattern, "=", sites.size()),
                      sites.empty() ? "Leave it at none: it is for models with blocks, such as the vit"
                                    : "Ask for as many blocks as there are, or for all (0)");
  }
  if (wanted > 0) sites.resize(wanted);
  for (model::Site* site : sites) {
    site->install([weights = weights_at(*site, table)](model::Tensors in, const model::Body& body) {
      if (!at::GradMode::is_enabled()) return body(std::move(in));
      return ops::recomputed(body, in, weights);
    });
  }
}

}  // namespace welkin::train
