// SPDX-License-Identifier: Apache-2.0
#include "train/step/layout.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "parallel/mesh/run_mesh.h"
#include "parallel/tokens/context_choice.h"
#include "train/step/model_setup.h"

namespace welkin::train {
namespace {

parallel::Plan plan_of(Layout& layout, const SetupSource& source) {
  const parallel::Mesh& mesh = layout.groups.mesh();
  const config::ModelConfig& model = source.config.model;
  const std::vector<std::string> planned = source.registries.plans.names();
  if (std::find(planned.begin(), planned.end(), model.model) == planned.end()) {
    throw ConfigError("train",
                      cat("the model has no plan for tensor or context parallelism: model=", model.model,
                          ", tensor_parallel=", mesh.size(parallel::Axis::Tp),
                          ", context_parallel=", mesh.size(parallel::Axis::Cp), ", models with one=", join(planned, " ")),
                      "Leave both at 1, or register a plan (docs/guide/parallelism.md)");
  }
  const parallel::PlanEntry& entry = source.registries.plans.at(model.model);
  for (const parallel::Axis axis : {parallel::Axis::Tp, parallel::Axis::Cp}) {
    if (mesh.size(axis) == 1 || entry.axes.contains(axis)) continue;
    throw ConfigError("train",
                      cat("the plan of the model does not split it over this axis: model=", model.model, ", ",
                          parallel::axis_name(axis), "=", mesh.size(axis)),
                      "Set it to 1");
  }
  const model::ModelShape shape = shape_of(source.spec);
  const parallel::LayoutOptions options{
      .sequence_parallel = source.config.parallel.sequence_parallel,
      .context_mode = parallel::context_mode_of(source.config, shape, mesh, source.device.is_cuda(), &layout.context_note),
      .sharded_io = source.config.parallel.context_io == config::ContextIo::Sharded};
  return entry.make(model, shape, mesh, options);
}

}  // namespace

parallel::MeshGroups make_mesh_groups(const config::ParallelConfig& config, const parallel::World& world) {
  const auto make = [&world](const std::string& name, parallel::GroupMembers members) {
    return world.group(name, std::move(members));
  };
  return {make, world.rank(), parallel::mesh_of(config, world.size())};
}

Layout make_layout(parallel::MeshGroups groups, const SetupSource& source) {
  Layout layout;
  layout.groups = std::move(groups);
  layout.replicas = layout.exchange = layout.groups.along(parallel::kDp);
  if (layout.groups.mesh().size(parallel::Axis::Tp | parallel::Axis::Cp) == 1) return layout;
  layout.plan = plan_of(layout, source);
  layout.shard = SampleShard(*layout.plan, layout.groups, source.spec);
  // Where every gradient is a part of a sum over context parallel ranks too, one exchange over dp x cp serves both.
  const config::ParallelConfig& parallel = source.config.parallel;
  if (!layout.shard.is_whole() && !parallel.rank_invariant && !parallel.noddp) {
    layout.exchange = layout.groups.along(parallel::kDp | parallel::Axis::Cp);
  }
  return layout;
}

}  // namespace welkin::train
