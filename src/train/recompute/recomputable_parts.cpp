// SPDX-License-Identifier: Apache-2.0
#include "train/recompute/recomputable_parts.h"

#include <algorithm>
#include <utility>

#include "core/text.h"
#include "train/recompute/activation_checkpointing.h"

namespace welkin::train {
namespace {

using Options = std::vector<std::vector<size_t>>;

// A site that contains many others has many combinations of options; beyond this number it runs again whole or not at all.
constexpr size_t kMostOptions = 32;

bool holds_work(const model::Site& site, const std::vector<model::Site*>& all, const parallel::ParamTable& table) {
  const bool holds_sites = std::ranges::any_of(all, [&](const model::Site* other) { return site.holds(other->name()); });
  return holds_sites && std::ranges::any_of(table.rows(), [&](const auto& row) { return site.holds(row.name); });
}

// True if no third one of `sites` lies between the two.
bool is_next_inside(const std::vector<model::Site*>& sites, size_t outer, size_t inner) {
  if (!sites[outer]->holds(sites[inner]->name())) return false;
  return std::ranges::none_of(
      sites, [&](const model::Site* other) { return sites[outer]->holds(other->name()) && other->holds(sites[inner]->name()); });
}

Options combined(const Options& ours, const Options& theirs) {
  Options all;
  for (const auto& one : ours) {
    for (const auto& other : theirs) {
      all.push_back(one);
      all.back().insert(all.back().end(), other.begin(), other.end());
    }
  }
  return all;
}

// No site, the site itself, and the combinations of its inner sites.
Options options_of(const std::vector<model::Site*>& sites, size_t site) {
  Options inner{{}};
  for (size_t i = 0; i < sites.size(); ++i) {
    if (!is_next_inside(sites, site, i)) continue;
    Options more = combined(inner, options_of(sites, i));
    if (more.size() <= kMostOptions) inner = std::move(more);
  }
  inner.insert(inner.begin() + 1, {site});
  return inner;
}

std::string kind_of(const model::Site& site, const parallel::ParamTable& table) {
  std::string kind = kind_of_name(site.name());
  for (const parallel::ParamRow& row : table.rows()) {
    if (!site.holds(row.name)) continue;
    kind += cat(" [", join(row.global_shape, ","), "]", row.local.requires_grad() ? "" : "frozen");
  }
  return kind;
}

RecomputablePart part_at(const std::vector<model::Site*>& sites, size_t outer, const parallel::ParamTable& table) {
  RecomputablePart part{.kind = kind_of(*sites[outer], table), .sites = {outer}, .options = {}};
  for (size_t i = 0; i < sites.size(); ++i) {
    if (sites[outer]->holds(sites[i]->name())) part.sites.push_back(i);
  }
  for (std::vector<size_t>& option : part.options = options_of(sites, outer)) {
    for (size_t& site : option) site = static_cast<size_t>(std::ranges::find(part.sites, site) - part.sites.begin());
  }
  return part;
}

}  // namespace

RecomputableParts recomputable_parts(model::Model& model, const parallel::ParamTable& table) {
  const std::vector<model::Site*> all = model.sites();
  RecomputableParts found;
  for (model::Site* site : all) {
    if (holds_work(*site, all, table)) found.sites.push_back(site);
  }
  for (size_t i = 0; i < found.sites.size(); ++i) {
    const auto holds_it = [&](const model::Site* other) { return other->holds(found.sites[i]->name()); };
    if (std::ranges::none_of(found.sites, holds_it)) found.parts.push_back(part_at(found.sites, i, table));
  }
  return found;
}

}  // namespace welkin::train
