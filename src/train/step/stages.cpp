// SPDX-License-Identifier: Apache-2.0
#include "train/step/stages.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/schema/batch_plan.h"
#include "core/error.h"
#include "core/text.h"
#include "model/layers/linear.h"
#include "ops/base/autocast.h"
#include "train/learn/precision.h"
#include "train/recompute/activation_checkpointing.h"
#include "train/rollout/curriculum.h"
#include "train/step/model_setup.h"

namespace welkin::train {
namespace {

using Segments = std::vector<model::Segment>;

struct Refused {
  const char* key;
  bool is_on;
};

void refuse(const config::ParallelConfig& parallel, const std::vector<Refused>& others, const std::string& schedule,
            const char* instead) {
  for (const auto& [key, is_on] : others) {
    if (!is_on) continue;
    throw ConfigError(
        "parallel", cat("a pipeline does not go with this: pipeline_parallel=", parallel.pipeline_parallel, ", ", schedule, key),
        cat("Leave ", key, " out, or ", instead));
  }
}

// Refuses options that need whole models or have no table of passes, and those that keep a layer's input off its graph.
void check_options(const config::RunConfig& config) {
  const config::ParallelConfig& parallel = config.parallel;
  const config::CheckpointedPart part = config.loop.activation_checkpointing.part;
  refuse(parallel,
         {{"rank_invariant", parallel.rank_invariant},
          {"static_graph", parallel.static_graph},
          {"cuda_graph", config.backend.cuda_graph},
          {"micro_batch_size: auto", config.loop.micro_batch_size.is_auto},
          {"activation_checkpointing: budget", part == config::CheckpointedPart::Budget}},
         "", "set pipeline_parallel to 1");
  if (parallel.pipeline_schedule != config::PipelineSchedule::ZeroBubble) return;
  refuse(parallel,
         {{"activation_checkpointing", part != config::CheckpointedPart::None},
          {"multistep_recompute", config.loss.multistep_recompute},
          {"offload: activations", std::ranges::find(config.backend.offload, "activations") != config.backend.offload.end()}},
         "pipeline_schedule: zero_bubble, ", "take pipeline_schedule: 1f1b, gpipe or interleaved");
}

void check_micro_batches(const config::RunConfig& config, int64_t replicas) {
  const parallel::PipelineShape shape{.ranks = config.parallel.pipeline_parallel,
                                      .micros = config::batch_plan(config, replicas).micros(),
                                      .chunks = config.parallel.chunks()};
  parallel::check_shape(config.parallel.pipeline_schedule, shape);
}

// The last stage makes the prediction that the next model step takes as input, and sends it to the first stage.
void check_readers(const Segments& segments, const std::vector<parallel::StageRange>& stages, const SetupSource& source) {
  if (!has_sequences(source.config, source.spec)) return;
  for (size_t stage = 1; stage + 1 < stages.size(); ++stage) {
    for (int64_t i = stages[stage].begin; i < stages[stage].end; ++i) {
      const model::Segment& segment = segments[static_cast<size_t>(i)];
      if (!segment.reads_input) continue;
      throw ConfigError("parallel",
                        cat("in a rollout no block between the first and the last stage may read the model's input: model=",
                            source.config.model.model, ", block=", segment.name,
                            ", multistep=", source.config.loss.multistep.most(), ", stages=", parallel::text_of(stages)),
                        "Set Segment::reads_input to false where it does not, or multistep to 1, or move it by pipeline_split");
    }
  }
}

void check_segments(const Segments& segments, const parallel::ParamTable& table, const std::string& name) {
  if (segments.empty()) {
    throw ConfigError("parallel", cat("the model does not say where a pipeline may cut it: model=", name),
                      "Set pipeline_parallel to 1, or give the model segments() (docs/guide/parallelism.md)");
  }
  for (const parallel::ParamRow& row : table.rows()) {
    if (std::ranges::any_of(segments, [&](const auto& segment) { return row.is_held_by(segment); })) continue;
    throw ConfigError("parallel",
                      cat("no segment of the model works with this parameter: model=", name, ", parameter=", row.name),
                      "Name its layer in each segment that works with it (src/model/base/segment.h)");
  }
}

void check_linear_layers(const model::Model& model, const config::RunConfig& config) {
  if (config.parallel.pipeline_schedule != config::PipelineSchedule::ZeroBubble) return;
  const auto modules = model.modules(/*include_self=*/false);
  const bool has_some = std::ranges::any_of(
      modules, [](const auto& module) { return dynamic_cast<const model::Linear*>(module.get()) != nullptr; });
  if (has_some) return;
  throw ConfigError("parallel",
                    cat("the model has no linear layers, whose gradients by the weight could wait: model=", config.model.model,
                        ", pipeline_schedule=zero_bubble"),
                    "Take pipeline_schedule: 1f1b");
}

// A pipeline would not run a site that reaches over several segments: a wrapper there would have no effect.
void check_sites(model::Model& model, const Segments& segments, const config::RunConfig& config) {
  for (const model::Site* site : sites_to_run_again(model, config)) {
    const auto parts = std::ranges::count_if(segments, [&](const model::Segment& segment) {
      return segment.holds(site->name()) ||
             std::ranges::any_of(segment.layers, [&](const std::string& layer) { return site->holds(layer); });
    });
    if (parts == 1) continue;
    throw ConfigError("parallel",
                      cat("a part that is run again reaches over several blocks of the pipeline: site=", site->name()),
                      "Name sites inside of blocks: activation_checkpointing takes a pattern");
  }
}

void check_trained(const parallel::ParamTable& table, const Layout& layout) {
  if (std::ranges::any_of(table.rows(), [](const parallel::ParamRow& row) { return row.local.requires_grad(); })) return;
  throw ConfigError("parallel",
                    cat("a rank of the pipeline has nothing to train: stages=", parallel::text_of(layout.stages),
                        ", rank of the pipeline=", layout.groups.along(parallel::Axis::Pp).group_rank()),
                    "Freeze less, or give it other blocks by pipeline_split");
}

at::Tensor zero_sample(const SetupSource& source, const SampleShard& shard) {
  std::vector<int64_t> sizes = source.spec.input.shape;
  if (const auto region = shard.region()) {
    for (size_t dim = 1; dim < sizes.size(); ++dim) sizes[dim] = region->extent[dim - 1];
  }
  sizes.insert(sizes.begin(), 1);
  return at::zeros(sizes, at::TensorOptions(at::kFloat).device(source.device));
}

std::vector<parallel::StageRange> cut(const ModelOutline& outline, const config::ParallelConfig& config, int64_t stages) {
  if (config.pipeline_split.empty()) return parallel::balanced_stages(outline.costs, stages);
  return parallel::stages_of_text(config.pipeline_split, static_cast<int64_t>(outline.segments.size()), stages);
}

}  // namespace

ModelOutline outline_of(const model::ModelPtr& model, const SetupSource& source) {
  ModelOutline outline{.model = model, .table = parallel::ParamTable::of(*model), .segments = model->segments(), .costs = {}};
  check_segments(outline.segments, outline.table, source.config.model.model);
  outline.costs = parallel::segment_costs(outline.segments, cost_of(source.registries, source.config, source.spec));
  return outline;
}

std::vector<parallel::StageRange> stages_of(const parallel::Mesh& mesh, const SetupSource& source) {
  if (mesh.size(parallel::Axis::Pp) == 1) return {};
  const config::RunConfig& config = source.config;
  check_options(config);
  check_micro_batches(config, mesh.size(parallel::kDp));
  ModelOutline own;
  if (source.outline == nullptr)
    own = outline_of(source.registries.models.at(config.model.model).build(config.model, shape_of(source.spec)), source);
  const ModelOutline& outline = source.outline == nullptr ? own : *source.outline;
  auto stages = cut(outline, config.parallel, mesh.size(parallel::Axis::Pp) * config.parallel.chunks());
  check_sites(*outline.model, outline.segments, config);
  check_readers(outline.segments, stages, source);
  check_linear_layers(*outline.model, config);
  return stages;
}

std::vector<parallel::StageRange> cut_model(const model::ModelPtr& model, const SetupSource& source, int64_t stages) {
  return cut(outline_of(model, source), source.config.parallel, stages);
}

std::vector<parallel::TiedStages> tied_stages_of(const std::vector<parallel::StageRange>& stages,
                                                 const parallel::MeshGroups& groups, const SetupSource& source) {
  if (stages.empty()) return {};
  const config::RunConfig& config = source.config;
  const model::ModelPtr model = source.registries.models.at(config.model.model).build(config.model, shape_of(source.spec));
  return parallel::tied_stages(model->segments(), stages, parallel::ParamTable::of(*model), groups);
}

std::vector<int64_t> input_readers_of(const std::vector<parallel::StageRange>& stages, int64_t ranks, const SetupSource& source) {
  if (stages.empty()) return {};
  const config::RunConfig& config = source.config;
  const model::ModelPtr model = source.registries.models.at(config.model.model).build(config.model, shape_of(source.spec));
  return parallel::input_readers(model->segments(), stages, ranks);
}

std::shared_ptr<parallel::WeightQueue> defer_weights(TrainSetup& setup, const config::RunConfig& config) {
  if (setup.layout.stages.empty() || config.parallel.pipeline_schedule != config::PipelineSchedule::ZeroBubble) return nullptr;
  auto weights = std::make_shared<parallel::WeightQueue>();
  parallel::defer_weight_gradients(*setup.model, setup.table, weights);
  return weights;
}

void keep_own_stages(TrainSetup& setup, const SetupSource& source, const std::shared_ptr<parallel::WeightQueue>& weights) {
  if (setup.layout.stages.empty()) return;
  const config::RunConfig& config = source.config;
  const parallel::PipelineOptions options{.schedule = config.parallel.pipeline_schedule,
                                          .chunks = config.parallel.chunks(),
                                          .stages = setup.layout.stages,
                                          .weights = weights};
  setup.pipeline =
      std::make_unique<parallel::PipelineEngine>(setup.model->segments(), setup.layout.groups.along(parallel::Axis::Pp), options);
  const at::TensorOptions whole_numbers = at::TensorOptions(at::kLong).device(source.device);
  const parallel::PipelineBatch sample{
      zero_sample(source, setup.layout.shard),
      {.seed = config.loop.seed, .step = at::zeros({}, whole_numbers), .sample = at::zeros({1}, whole_numbers)}};
  for (const config::AmpMode mode : {config::AmpMode::None, config.precision.amp_mode}) {
    const ops::AutocastGuard autocast(source.device.type(), autocast_dtype(mode));
    setup.pipeline->learn_shapes(sample);
  }
  setup.pipeline->keep_own(setup.table, setup.layout.tied);
  check_trained(setup.table, setup.layout);
}

data::Batch kept(const data::Batch& batch) {
  data::Batch copy = batch;
  copy.input = batch.input.clone();
  copy.target = batch.target.clone();
  copy.sample = batch.sample.clone();
  return copy;
}

data::Batch zero_batch(const data::Batch& like, const at::Tensor& counter) {
  const auto zeros = [](const at::Tensor& tensor) {
    std::vector<int64_t> sizes = tensor.sizes().vec();
    sizes.front() = 1;
    return at::zeros(sizes, tensor.options());
  };
  data::Batch batch;
  batch.input = zeros(like.input);
  batch.target = zeros(like.target);
  batch.sample = at::zeros({1}, counter.options());
  return batch;
}

parallel::PipelineBatch zero_micro_batch(const data::Batch& like, uint64_t seed, const at::Tensor& counter) {
  const data::Batch zeros = zero_batch(like, counter);
  return {zeros.input, {.seed = seed, .step = counter, .sample = zeros.sample}};
}

}  // namespace welkin::train
