// SPDX-License-Identifier: Apache-2.0
#include "train/step/step_parts.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "parallel/mesh/run_mesh.h"
#include "parallel/tokens/context_choice.h"
#include "train/step/activation_checkpointing.h"
#include "train/step/model_setup.h"

namespace welkin::train {
namespace {

parallel::DataParallelOptions data_parallel_options(const config::ParallelConfig& config) {
  parallel::DataParallelOptions options;
  options.bucket_cap_mb = config.bucket_cap_mb;
  options.gradient_as_bucket_view = config.disable_broadcast_buffers;
  options.static_graph = config.static_graph;
  options.exchange = !config.noddp && !config.rank_invariant;
  if (config.compress_gradients == "bf16") options.travel = parallel::GradientDtype::Bf16;
  if (config.compress_gradients == "fp16") options.travel = parallel::GradientDtype::Fp16;
  return options;
}

parallel::Plan plan_of(StepParts& parts, const StepSource& source) {
  const parallel::Mesh& mesh = parts.groups.mesh();
  const config::ModelConfig& model = source.config.model;
  const std::vector<std::string> planned = source.registries.plans.names();
  if (std::find(planned.begin(), planned.end(), model.model) == planned.end()) {
    throw ConfigError("train",
                      cat("the model has no plan for tensor or context parallelism: model=", model.model,
                          ", tensor_parallel=", mesh.size(parallel::Axis::Tp),
                          ", context_parallel=", mesh.size(parallel::Axis::Cp), ", models with one=", join(planned, " ")),
                      "Leave both at 1, or register a plan (docs/guide/parallelism.md)");
  }
  const model::ModelShape shape = shape_of(source.spec);
  const parallel::LayoutOptions options{
      .sequence_parallel = source.config.parallel.sequence_parallel,
      .context_mode = parallel::context_mode_of(source.config, shape, mesh, source.device.is_cuda(), &parts.context_note),
      .sharded_io = source.config.parallel.context_io == "sharded"};
  return source.registries.plans.at(model.model)(model, shape, mesh, options);
}

// Where every gradient is a part of a sum over cp too, one exchange over dp x cp serves both.
void share_samples(StepParts& parts, const StepSource& source) {
  parts.share = SampleShare(*parts.plan, parts.groups, source.spec);
  if (parts.share.is_whole()) return;
  const config::ParallelConfig& parallel = source.config.parallel;
  if (!parallel.rank_invariant && !parallel.noddp) parts.exchange = parts.groups.along(parallel::kDp | parallel::Axis::Cp);
}

}  // namespace

void place_ranks(StepParts& parts, const config::ParallelConfig& config, const parallel::MakeGroup& make, int64_t rank,
                 int64_t world_size) {
  parts.groups = parallel::MeshGroups(make, rank, parallel::mesh_of(config, world_size));
  parts.replicas = parts.groups.along(parallel::kDp);
}

void plan_layout(StepParts& parts, const StepSource& source) {
  parts.exchange = parts.replicas;
  if (parts.groups.mesh().size(parallel::Axis::Tp | parallel::Axis::Cp) == 1) return;
  parts.plan = plan_of(parts, source);
  share_samples(parts, source);
}

void build_model(StepParts& parts, const StepSource& source) {
  const config::RunConfig& config = source.config;
  parts.model = build_model(source.registries, config, source.spec, source.device);
  parts.model->train();
  parts.table = parallel::ParamTable::of(*parts.model);
  if (parts.plan) parallel::apply_plan(*parts.plan, *parts.model, parts.table, parts.groups);
  checkpoint_activations(*parts.model, parts.table, config);
  parts.table.check_strides();
  parts.loss = source.registries.losses.at(config.loss.loss)(config);
  parts.data_parallel =
      std::make_unique<parallel::DataParallel>(parts.table, parts.exchange, data_parallel_options(config.parallel));
  if (config.parallel.rank_invariant) parts.unit_sum = std::make_unique<parallel::TreeSum>(parts.replicas);
}

void build_optimizer(StepParts& parts, const StepSource& source, const RunLength& length) {
  const config::RunConfig& config = source.config;
  parts.optimizer = source.registries.optimizers.at(config.optimizer.optimizer)(config, optimizer_parameters(parts.table));
  parts.scaler = std::make_unique<LossScaler>(config.precision, source.device);
  const SchedulePtr schedule = source.registries.schedules.at(config.schedule.schedule)(config, length);
  const auto count = config.rules.rate_rule == "iterations" ? RateCount::Iterations : RateCount::Updates;
  parts.rates = std::make_unique<RateTable>(*schedule, length.total_steps, source.device, count);
  parts.counter = at::full({}, int64_t{0}, at::TensorOptions(at::kLong).device(source.device));
}

}  // namespace welkin::train
