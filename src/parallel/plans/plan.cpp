// SPDX-License-Identifier: Apache-2.0
// Applies a plan: the rows change sites and dropout layers, then partial gradients are determined. It knows no style by
// name except AllTokens.
#include "parallel/plans/plan.h"

#include <algorithm>
#include <string_view>

#include "core/error.h"
#include "core/text.h"
#include "model/layers/dropout.h"
#include "model/layers/instance_norm.h"
#include "model/layers/local_layer.h"
#include "parallel/plans/plan_context.h"

namespace welkin::parallel {
namespace {

TokenSplit split_of(const Plan& plan, const MeshGroups& groups) {
  std::vector<AxisSet> axes = plan.input_axes;
  for (const PlanRow& row : plan.rows) {
    if (const auto* split = std::get_if<SplitTokens>(&row.style)) axes.insert(axes.end(), split->axes.begin(), split->axes.end());
  }
  return {plan.num_tokens, axes, groups, plan.tokens_per_row};
}

// True if the style applies to sites.
bool install(const ParallelStyle& style, PlanContext& context, model::Site& site) {
  return std::visit(
      [&]<typename Style>(const Style& each) {
        if constexpr (requires { each.install(context, site); }) {
          each.install(context, site);
          return true;
        } else {
          return false;
        }
      },
      style);
}

model::Dropout::WindowOf window_of(const ParallelStyle& style, const PlanContext& context, const model::Dropout& layer) {
  return std::visit(
      [&]<typename Style>(const Style& each) -> model::Dropout::WindowOf {
        if constexpr (requires { each.window(context); }) {
          return each.window(context);
        } else {
          WELKIN_CHECK(false, cat("a row of the plan names a dropout layer, but its style is none of masks: ", layer.path()));
        }
      },
      style);
}

// True if the style applies to such layers.
template <typename Layer>
bool split(const ParallelStyle& style, const PlanContext& context, Layer& layer) {
  return std::visit(
      [&]<typename Style>(const Style& each) {
        if constexpr (requires { each.split(context, layer); }) {
          each.split(context, layer);
          return true;
        } else {
          return false;
        }
      },
      style);
}

// True if the module is such a layer, and the style applies to it.
template <typename Layer>
bool split_as(const PlanRow& row, const PlanContext& context, torch::nn::Module* module) {
  auto* layer = dynamic_cast<Layer*>(module);
  return layer != nullptr && matches_pattern(row.pattern, layer->path()) && split(row.style, context, *layer);
}

void apply_row(const PlanRow& row, PlanContext& context, const std::vector<model::Site*>& sites) {
  bool used = false;
  for (model::Site* site : sites) {
    if (matches_pattern(row.pattern, site->name())) used = install(row.style, context, *site) || used;
  }
  for (const auto& module : model::modules_in(context.model)) {
    used = split_as<model::LocalLayer>(row, context, module.get()) || used;
    used = split_as<model::InstanceNorm>(row, context, module.get()) || used;
    auto* dropout = dynamic_cast<model::Dropout*>(module.get());
    if (dropout == nullptr || !matches_pattern(row.pattern, dropout->path())) continue;
    dropout->window_of = window_of(row.style, context, *dropout);
    used = true;
  }
  for (const ParamRow& parameter : context.table.rows()) used = used || matches_pattern(row.pattern, parameter.name);
  if (used) return;
  throw ConfigError("parallel", cat("a row of the plan names nothing in the model: pattern=", row.pattern),
                    "Name a site, a parameter or a layer of this model; * stands for one part of a path");
}

// The site with the longest name that is a prefix of the parameter's.
size_t site_index_of(const std::vector<model::Site*>& sites, const std::string& parameter) {
  size_t best = sites.size();
  for (size_t i = 0; i < sites.size(); ++i) {
    const bool leads = parameter.starts_with(sites[i]->name() + ".");
    if (leads && (best == sites.size() || sites[i]->name().size() > sites[best]->name().size())) best = i;
  }
  if (best < sites.size()) return best;
  throw ConfigError("parallel", cat("the plan does not say which tokens a parameter sees: parameter=", parameter),
                    "Give its layer a site, or the plan a row AllTokens for it");
}

void follow(const ParallelStyle& style, PartialSums& sums, bool leaves) {
  std::visit(
      [&]<typename Style>(const Style& each) {
        if constexpr (requires { each.enter(sums); }) each.enter(sums);
        if constexpr (requires { each.leave(sums); }) {
          if (leaves) each.leave(sums);
        }
      },
      style);
}

AxisSet axes_of(const std::vector<AxisSet>& axes) {
  AxisSet set;
  for (const AxisSet each : axes) set = set | each;
  return set;
}

AxisSet partial_axes(const PlanContext& context, const std::vector<model::Site*>& sites, const ParamRow& row) {
  PartialSums sums{.input = axes_of(context.plan.input_axes)};
  if (context.plan.blocks) sums.input = sums.input | kSpatial;
  const ParallelStyle* own = context.style_of(row.name);
  if (own != nullptr && std::holds_alternative<AllTokens>(*own)) return sums.all();
  const size_t place = site_index_of(sites, row.name);
  for (size_t i = 0; i <= place; ++i) {
    if (const ParallelStyle* style = context.style_of(sites[i]->name())) follow(*style, sums, /*leaves=*/i < place);
  }
  AxisSet summed;
  for (const Axis axis : {Axis::Tp, Axis::Cp, Axis::H, Axis::W, Axis::D}) {
    if (sums.all().contains(axis) && !row.placements[axis].sharded()) summed = summed | axis;
  }
  return summed;
}

}  // namespace

bool matches_pattern(const std::string& pattern, const std::string& name) {
  std::string_view wanted = pattern, given = name;
  while (true) {  // without allocations: a search over layouts asks for each layer and row
    const size_t want_end = wanted.find('.'), end = given.find('.');
    const std::string_view want = wanted.substr(0, want_end);
    if (want != "*" && want != given.substr(0, end)) return false;
    if (want_end == std::string_view::npos || end == std::string_view::npos) return want_end == end;
    wanted.remove_prefix(want_end + 1);
    given.remove_prefix(end + 1);
  }
}

void apply_plan(const Plan& plan, model::Model& model, ParamTable& table, const MeshGroups& groups,
                const std::shared_ptr<WeightQueue>& weights) {
  const std::vector<model::Site*> sites = model.sites();
  PlanContext context{
      .plan = plan, .model = model, .table = table, .groups = groups, .tokens = split_of(plan, groups), .weights = weights};
  for (const PlanRow& row : plan.rows) apply_row(row, context, sites);
  for (ParamRow& row : table.rows()) row.partial_over = partial_axes(context, sites, row);
  table.check_strides();
}

}  // namespace welkin::parallel
