// SPDX-License-Identifier: Apache-2.0
#include "train/recompute/activation_checkpointing.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "ops/base/recompute.h"
#include "parallel/plans/plan.h"

namespace welkin::train {
namespace {

using config::CheckpointedPart;
using Sites = std::vector<model::Site*>;

Sites sites_if(model::Model& model, const std::function<bool(const std::string&)>& wanted) {
  Sites found;
  for (model::Site* site : model.sites()) {
    if (wanted(site->name())) found.push_back(site);
  }
  return found;
}

Sites without_inner(const Sites& sites) {
  Sites outer;
  for (model::Site* site : sites) {
    const bool is_inner = std::ranges::any_of(sites, [&](const model::Site* other) { return other->holds(site->name()); });
    if (!is_inner) outer.push_back(site);
  }
  return outer;
}

// The U-Net's levels are nested.
std::vector<std::string> patterns_of(CheckpointedPart part) {
  if (part == CheckpointedPart::Blocks) return {"blocks.*", "levels.*"};
  return {part == CheckpointedPart::Mlp ? "blocks.*.mlp" : "blocks.*.attn"};
}

Sites sites_of_part(model::Model& model, CheckpointedPart part) {
  for (const std::string& pattern : patterns_of(part)) {
    const Sites found = sites_if(model, [&](const std::string& name) { return parallel::matches_pattern(pattern, name); });
    if (!found.empty()) return without_inner(found);
  }
  return {};
}

std::string kinds_of_sites(model::Model& model) {
  std::vector<std::string> kinds;
  for (const model::Site* site : model.sites()) {
    const std::string kind = kind_of_name(site->name());
    if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
  }
  return join(kinds, ", ");
}

Sites sites_by_regex(model::Model& model, const config::RunConfig& config) {
  const std::string& pattern = config.loop.activation_checkpointing.pattern;
  Sites found = sites_if(model, [&](const std::string& name) { return config::matches_regex(pattern, name); });
  if (!found.empty()) return without_inner(found);
  throw ConfigError(
      "activation_checkpointing",
      cat("no site has a name that the pattern matches as a whole: pattern=", pattern, ", model=", config.model.model),
      cat("Its sites are, with # for a number: ", kinds_of_sites(model)));
}

}  // namespace

std::string kind_of_name(const std::string& name) {
  std::string kind;
  for (const char c : name) {
    if (c < '0' || c > '9') {
      kind += c;
    } else if (kind.empty() || kind.back() != '#') {
      kind += '#';
    }
  }
  return kind;
}

std::vector<at::Tensor> weights_at(const model::Site& site, const parallel::ParamTable& table) {
  std::vector<at::Tensor> weights;
  for (const parallel::ParamRow& row : table.rows()) {
    if (site.holds(row.name)) weights.push_back(row.local);
  }
  return weights;
}

bool has_blocks(model::Model& model) { return !sites_of_part(model, CheckpointedPart::Blocks).empty(); }

Sites sites_to_run_again(model::Model& model, const config::RunConfig& config) {
  const CheckpointedPart part = config.loop.activation_checkpointing.part;
  if (part == CheckpointedPart::None || part == CheckpointedPart::Budget) return {};
  if (part == CheckpointedPart::Pattern) return sites_by_regex(model, config);
  Sites sites = sites_of_part(model, part);
  const auto wanted = static_cast<size_t>(config.loop.activation_checkpointing_blocks);
  if (sites.empty() || wanted > sites.size()) {
    throw ConfigError("activation_checkpointing",
                      cat(sites.empty() ? "the model has no such parts" : "the model has fewer blocks",
                          ": activation_checkpointing=", name_of(part), ", activation_checkpointing_blocks=", wanted,
                          ", model=", config.model.model, ", sites ", join(patterns_of(part), " or "), "=", sites.size()),
                      sites.empty() ? "Leave it at none, or name sites by a pattern: blocks are those of the vit"
                                    : "Ask for as many blocks as there are, or for all (0)");
  }
  if (wanted > 0) sites.resize(wanted);
  return sites;
}

Sites sites_named(model::Model& model, const std::vector<std::string>& names) {
  return sites_if(model, [&](const std::string& name) { return std::ranges::find(names, name) != names.end(); });
}

void run_again(const Sites& sites, const parallel::ParamTable& table) {
  for (model::Site* site : sites) {
    site->install([weights = weights_at(*site, table)](model::Tensors in, const model::Body& body) {
      if (!at::GradMode::is_enabled()) return body(std::move(in));
      return ops::recomputed(body, in, weights);
    });
  }
}

void checkpoint_activations(model::Model& model, const parallel::ParamTable& table, const config::RunConfig& config) {
  run_again(sites_to_run_again(model, config), table);
}

}  // namespace welkin::train
