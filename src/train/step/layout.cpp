// SPDX-License-Identifier: Apache-2.0
#include "train/step/layout.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "parallel/mesh/run_mesh.h"
#include "parallel/tokens/context_choice.h"
#include "train/step/model_setup.h"
#include "train/step/stages.h"

namespace welkin::train {
namespace {

bool is_planned(const parallel::Mesh& mesh) { return mesh.size(parallel::Axis::Tp | parallel::kSampleParts) > 1; }

// `note`: the reason for the way in which the plan exchanges keys and values, if the plan chose it.
parallel::Plan make_plan(const parallel::Mesh& mesh, const SetupSource& source, std::string& note) {
  const config::ModelConfig& model = source.config.model;
  const std::vector<std::string> planned = source.registries.plans.names();
  if (std::find(planned.begin(), planned.end(), model.model) == planned.end()) {
    throw ConfigError(
        "train",
        cat("the model has no plan for tensor, context or spatial parallelism: model=", model.model,
            ", tensor_parallel=", mesh.size(parallel::Axis::Tp), ", context_parallel=", mesh.size(parallel::Axis::Cp),
            ", spatial=", config::text_of(source.config.parallel.spatial), ", models with one=", join(planned, " ")),
        "Leave all at 1, or register a plan (docs/guide/parallelism.md)");
  }
  const parallel::PlanEntry& entry = source.registries.plans.at(model.model);
  using parallel::Axis;
  for (const Axis axis : {Axis::Tp, Axis::Cp, Axis::D, Axis::H, Axis::W}) {
    if (mesh.size(axis) == 1 || entry.axes.contains(axis)) continue;
    throw ConfigError("train",
                      cat("the plan of the model does not split it over this axis: model=", model.model, ", ",
                          parallel::axis_name(axis), "=", mesh.size(axis)),
                      "Set it to 1");
  }
  const model::ModelShape shape = shape_of(source.spec);
  parallel::ContextMode mode = parallel::ContextMode::AllToAll;
  if (entry.has_context_modes) {
    mode = parallel::context_mode_of(source.config, shape, mesh, source.device.is_cuda(), &note);
  } else if (mesh.size(Axis::Cp) > 1) {
    note = cat("context_mode: all_to_all, the only one of model=", model.model);
  }
  const parallel::LayoutOptions options{.sequence_parallel = source.config.parallel.sequence_parallel,
                                        .context_mode = mode,
                                        .sharded_io = source.config.parallel.context_io == config::ContextIo::Sharded};
  return entry.make(model, shape, mesh, options);
}

std::string shard_name(config::ShardStage stage) {
  return std::array{"none", "optimizer", "gradients", "full"}[static_cast<size_t>(stage)];
}

void share_out(Layout& layout, const config::ParallelConfig& config, bool with_cp) {
  if (config.shard == config::ShardStage::None) return;
  const auto group = [&](parallel::Axis axis) -> const parallel::Group& {
    return layout.groups.along(with_cp && axis == parallel::Axis::DpShard ? axis | parallel::kSampleParts
                                                                          : parallel::AxisSet(axis));
  };
  layout.sharding = {group(parallel::Axis::DpShard), group(parallel::Axis::DpReplicate), with_cp};
  if (layout.sharding.shards.size() > 1) return;
  layout.shard_note = "shard has nothing to share out: there is one data-parallel rank";
}

// Refuses options that keep whole training states, or that need values which are there only now and then.
void check_sharding(const config::RunConfig& config) {
  const config::ParallelConfig& parallel = config.parallel;
  if (parallel.shard == config::ShardStage::None) return;
  const std::array<std::pair<const char*, bool>, 5> others{{{"rank_invariant", parallel.rank_invariant},
                                                            {"noddp", parallel.noddp},
                                                            {"disable_broadcast_buffers", parallel.disable_broadcast_buffers},
                                                            {"static_graph", parallel.static_graph},
                                                            {"cuda_graph", config.backend.cuda_graph}}};
  for (const auto& [key, is_on] : others) {
    if (!is_on) continue;
    throw ConfigError("parallel",
                      cat("the training state cannot be shared out here: shard=", shard_name(parallel.shard), ", ", key, "=true"),
                      cat("Leave ", key, " out, or take shard: none"));
  }
}

}  // namespace

parallel::MeshGroups make_mesh_groups(const config::ParallelConfig& config, const parallel::World& world) {
  const auto make = [&world](const std::string& name, parallel::GroupMembers members) {
    return world.group(name, std::move(members));
  };
  return {make, world.rank(), parallel::mesh_of(config, world.size(), world.size() / world.rank_info().num_nodes)};
}

std::vector<parallel::StageRange> checked_stages(const parallel::Mesh& mesh, const SetupSource& source) {
  check_sharding(source.config);
  auto stages = stages_of(mesh, source);
  plan_of(mesh, source);
  return stages;
}

std::optional<parallel::Plan> plan_of(const parallel::Mesh& mesh, const SetupSource& source) {
  std::string note;
  return is_planned(mesh) ? std::optional(make_plan(mesh, source, note)) : std::nullopt;
}

Layout make_layout(parallel::MeshGroups groups, const SetupSource& source) {
  check_sharding(source.config);
  Layout layout;
  layout.groups = std::move(groups);
  layout.stages = stages_of(layout.groups.mesh(), source);
  layout.tied = tied_stages_of(layout.stages, layout.groups, source);
  layout.input_readers = input_readers_of(layout.stages, layout.groups.along(parallel::Axis::Pp).size(), source);
  layout.replicas = layout.exchange = layout.groups.along(parallel::kDp);
  const config::ParallelConfig& parallel = source.config.parallel;
  if (!is_planned(layout.groups.mesh())) {
    share_out(layout, parallel, /*with_cp=*/false);
    return layout;
  }
  layout.plan = make_plan(layout.groups.mesh(), source, layout.context_note);
  layout.shard = SampleShard(*layout.plan, layout.groups, source.spec);
  // If every gradient is a part of a sum over ranks that share samples, one exchange over replicas and these ranks serves both.
  const bool has_cp = !layout.shard.is_whole() && !parallel.rank_invariant && !parallel.noddp;
  if (has_cp) layout.exchange = layout.groups.along(parallel::kDp | parallel::kSampleParts);
  share_out(layout, parallel, has_cp);
  return layout;
}

}  // namespace welkin::train
