// SPDX-License-Identifier: Apache-2.0
#include "parallel/sharding/weight_units.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "model/layers/linear.h"

namespace welkin::parallel {
namespace {

// A unit smaller than this fraction of the largest is not worth its messages.
constexpr int64_t kSmallestPart = 10;

bool is_within(const std::string& name, const std::string& site) { return name.starts_with(site + "."); }

// The site of a linear layer is only its matmul: the bias is added after it.
std::set<std::string> paths_of_linear_layers(const model::Model& model) {
  std::set<std::string> paths;
  for (const auto& module : model.modules(/*include_self=*/false)) {
    if (const auto* linear = dynamic_cast<const model::Linear*>(module.get())) paths.insert(linear->path());
  }
  return paths;
}

// True if several places of the model read it, not just one site.
bool is_tied(const ParamRow& row, const std::vector<model::Segment>& segments) {
  return !row.other_names.empty() ||
         std::ranges::count_if(segments, [&](const model::Segment& segment) { return row.is_held_by(segment); }) > 1;
}

int64_t elements_of(const WeightUnit& unit) {
  int64_t elements = 0;
  for (const ParamRow* row : unit.rows) elements += row->local.numel();
  return elements;
}

}  // namespace

std::vector<WeightUnit> weight_units(model::Model& model, ParamTable& table) {
  const std::vector<model::Site*> sites = model.sites();
  const std::set<std::string> linear = paths_of_linear_layers(model);
  const auto is_inner = [&](const model::Site* site) {
    return std::ranges::any_of(sites, [&](const model::Site* other) { return is_within(site->name(), other->name()); });
  };
  const std::vector<model::Segment> segments = model.segments();
  std::vector<WeightUnit> units;
  int64_t largest = 0;
  for (model::Site* site : sites) {
    if (is_inner(site)) continue;
    WeightUnit unit{.site = site, .is_matmul = linear.contains(site->name()), .chunk = 0, .rows = {}};
    for (ParamRow& row : table.rows()) {
      if (is_tied(row, segments)) continue;
      const bool reads = unit.is_matmul ? row.name == site->name() + ".weight" : is_within(row.name, site->name());
      if (reads) unit.rows.push_back(&row);
    }
    if (!unit.rows.empty()) unit.chunk = unit.rows.front()->chunk;
    largest = std::max(largest, elements_of(unit));
    units.push_back(std::move(unit));
  }
  std::erase_if(units, [&](const WeightUnit& unit) { return unit.rows.empty() || elements_of(unit) < largest / kSmallestPart; });
  std::set<const ParamRow*> taken;
  for (const WeightUnit& unit : units) taken.insert(unit.rows.begin(), unit.rows.end());
  std::set<int64_t> chunks{0};
  for (const ParamRow& row : table.rows()) chunks.insert(row.chunk);
  std::vector<WeightUnit> ordered;
  for (const int64_t chunk : chunks) {
    std::map<std::vector<int64_t>, WeightUnit> outside;  // by the other chunks that need it
    outside[{}].chunk = chunk;
    for (ParamRow& row : table.rows()) {
      if (row.chunk != chunk || taken.contains(&row)) continue;
      WeightUnit& unit = outside[row.other_chunks];
      unit.chunk = chunk;
      unit.other_chunks = row.other_chunks;
      unit.rows.push_back(&row);
    }
    for (auto unit = outside.rbegin(); unit != outside.rend(); ++unit) ordered.push_back(std::move(unit->second));
    for (WeightUnit& unit : units) {
      if (unit.chunk == chunk) ordered.push_back(std::move(unit));
    }
  }
  return ordered;
}

void surround_passes(model::Site& site, const std::function<void(int64_t)>& bring, const std::function<void(bool)>& leave) {
  site.install([bring, leave](model::Tensors in, const model::Body& body) {
    bring(1);
    model::Tensors out = body(std::move(in));
    bool has_graph = false;
    for (const at::Tensor& x : out) {
      if (!at::GradMode::is_enabled() || !x.requires_grad()) continue;
      has_graph = true;
      x.register_hook([bring](const at::Tensor& /*gradient*/) { bring(-1); });
    }
    leave(has_graph);
    return out;
  });
}

}  // namespace welkin::parallel
