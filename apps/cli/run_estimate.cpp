// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/run_estimate.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "config/resolve/resolve.h"
#include "config/schema/batch_plan.h"
#include "core/error.h"
#include "core/text.h"
#include "ops/gemm/mixed_matmul.h"
#include "parallel/mesh/run_mesh.h"
#include "parallel/pipeline/schedule_timing.h"
#include "parallel/pipeline/stage_cut.h"
#include "parallel/pipeline/tied_stages.h"
#include "parallel/plans/plan_traffic.h"
#include "parallel/shard/param_table.h"
#include "parallel/tokens/context_choice.h"
#include "plan/model_steps.h"
#include "train/learn/registries.h"
#include "train/step/freeze.h"
#include "train/step/layout.h"
#include "train/step/model_setup.h"
#include "train/step/stages.h"

namespace welkin::apps {
namespace {

data::SampleSpec spec_of(const model::ModelShape& shape) {
  data::SampleSpec spec;
  spec.newest_input_channel = shape.newest_input_channel;
  spec.earlier_target = shape.earlier;
  for (const auto& [array, channels] : {std::pair{&spec.input, shape.in_channels}, std::pair{&spec.target, shape.out_channels}}) {
    array->shape = shape.grid;
    array->shape.insert(array->shape.begin(), channels);
    array->channels.resize(static_cast<size_t>(channels));
  }
  return spec;
}

// Reads the facts from the keys alone where the data set can; else opens it.
train::DatasetFacts facts_of(const train::DatasetEntry& entry, const config::RunConfig& config) {
  if (entry.facts) {
    train::DatasetFacts facts = entry.facts(config);
    if (facts.shape.out_channels > 0) return facts;  // otherwise the channels follow from roles in the files
  }
  const auto dataset = entry.open(config, data::Split::Train);
  return {.shape = train::shape_of(dataset->spec()), .samples = dataset->size()};
}

template <typename Value, typename Make>
const Value& made_once(EstimateMemo& memo, std::optional<Value>& place, const Make& make) {
  const std::lock_guard lock(memo.mutex);
  if (!place) place = make();
  return *place;
}

// With its frozen parameters.
const model::ModelPtr& model_of(const train::SetupSource& source, EstimateMemo& memo) {
  return made_once(memo, memo.model, [&] {
    const config::RunConfig& config = source.config;
    model::ModelPtr model = source.registries.models.at(config.model.model).build(config.model, train::shape_of(source.spec));
    train::freeze_parameters(parallel::ParamTable::of(*model), config.optimizer.freeze);
    return model;
  });
}

int64_t frozen_parameters(const train::SetupSource& source, EstimateMemo& memo) {
  if (source.config.optimizer.freeze.empty()) return 0;
  const model::ModelPtr& model = model_of(source, memo);
  return made_once(memo, memo.frozen_parameters, [&] {
    int64_t frozen = 0;
    const auto table = parallel::ParamTable::of(*model);
    for (const parallel::ParamRow& row : table.rows()) frozen += row.local.requires_grad() ? 0 : row.local.numel();
    return frozen;
  });
}

// Channels of the newest input step that no prediction gives.
int64_t known_channels(const model::ModelShape& shape) {
  const auto undefined = std::ranges::count(shape.earlier, -1);
  return std::max<int64_t>(0, shape.in_channels - shape.newest_input_channel - (shape.out_channels - undefined));
}

bool widens_matmuls(const config::RunConfig& config) {
  if (config.precision.amp_mode == config::AmpMode::None) return false;
  const bool is_half = config.precision.amp_mode == config::AmpMode::Fp16;
  return ops::upcasts_matmul(at::kCPU, is_half ? at::kHalf : at::kBFloat16);
}

// Names and sizes of the samples; nothing where only the files know them.
std::optional<data::SampleSpec> spec_of_keys(const train::Registries& registries, const config::RunConfig& config) {
  const train::DatasetEntry& entry = registries.datasets.at(config.data.dataset);
  const model::ModelShape shape = entry.facts ? entry.facts(config).shape : model::ModelShape();
  if (shape.in_channels == 0 || shape.out_channels == 0) return std::nullopt;
  return spec_of(shape);
}

// Values that wait for the weight passes of zero_bubble, over all that a forward pass keeps: inputs of linear layers and the
// gradients of their outputs.
double waiting_over_activations(const plan::RunFacts& facts) {
  if (!facts.memory || facts.memory->kept.sum_on_cpu() == 0) return 1;
  double values = 0;
  for (const model::LayerCost& layer : facts.cost.layers) {
    if (layer.weights > 0) values += (layer.activation_bytes - layer.shared_bytes) / model::kFloatBytes;
  }
  return values / facts.memory->kept.sum_on_cpu();
}

const EstimateMemo::ScheduleFacts& schedule_facts(const config::RunConfig& config, const parallel::PipelineShape& pipeline,
                                                  const parallel::PassCosts& costs, const plan::RunFacts& facts,
                                                  EstimateMemo& memo) {
  const auto kind = config.parallel.pipeline_schedule;
  const std::lock_guard lock(memo.mutex);
  const auto [found, is_new] = memo.schedules.try_emplace({kind, pipeline.ranks, pipeline.micros});
  if (is_new) {
    const parallel::Schedule schedule = parallel::make_schedule(kind, pipeline);
    found->second = {.held = parallel::held_with_waiting(schedule, waiting_over_activations(facts)),
                     .idle = parallel::time_schedule(schedule, costs).bubble};
  }
  return found->second;
}

// Adds each stage's share of the model by the same cut as a run, and its schedule's memory and idle time. `facts` has the cost.
void add_pipeline(const train::SetupSource& source, const std::vector<parallel::StageRange>& ranges, int64_t replicas,
                  EstimateMemo& memo, plan::RunFacts& facts) {
  if (ranges.empty()) return;
  const config::RunConfig& config = source.config;
  const auto& [model, table, segments, costs] = *source.outline;
  const double all_flops = std::accumulate(costs.begin(), costs.end(), 0.0);
  const auto all_parameters = static_cast<double>(table.num_parameters());
  const double all_trained = all_parameters - static_cast<double>(facts.frozen_parameters);
  const parallel::PipelineShape pipeline{.ranks = config.parallel.pipeline_parallel,
                                         .micros = config::batch_plan(config, replicas).micros(),
                                         .chunks = config.parallel.chunks(),
                                         .leads = plan::model_steps(config),
                                         .only_last = plan::stage_passes(config).backward < plan::stage_passes(config).forward};
  parallel::PassCosts pass;
  facts.stages.assign(static_cast<size_t>(pipeline.ranks), {.parameters = 0, .trained = 0, .flops = 0});
  for (size_t s = 0; s < ranges.size(); ++s) {
    const double flops = std::accumulate(costs.begin() + ranges[s].begin, costs.begin() + ranges[s].end, 0.0) / all_flops;
    facts.stages[static_cast<size_t>(pipeline.rank_of(static_cast<int64_t>(s)))].flops += flops;
    pass.stages.push_back(flops * static_cast<double>(ranges.size()));
  }
  for (const parallel::ParamRow& row : table.rows()) {  // tied weights have a copy on each rank that works with them
    const auto size = static_cast<double>(row.local.numel());
    const std::vector<int64_t> holders = parallel::holders_of(segments, ranges, pipeline.ranks, row);
    const auto copies = static_cast<double>(holders.size());
    for (const int64_t rank : holders) {
      plan::StageFacts& stage = facts.stages[static_cast<size_t>(rank)];
      stage.parameters += size / all_parameters;
      if (!row.local.requires_grad()) continue;
      stage.trained += size / all_trained;
      stage.tied += 2 * (copies - 1) / copies * size;
    }
  }
  const auto& [held, idle] = schedule_facts(config, pipeline, pass, facts, memo);
  const bool runs_again = pipeline.leads > 1 && config.loss.multistep_recompute;
  for (size_t rank = 0; rank < held.size(); ++rank) {
    facts.stages[rank].held = runs_again ? 1 : held[rank];
    if (runs_again) facts.stages[rank].inputs_held = held[rank];
  }
  facts.idle = idle;
}

// Sites whose forward pass is made again for the backward pass. Of a choice by pattern or budget it is not known before the run.
bool runs_again(const config::RunConfig& config, const std::string& pattern) {
  const auto has = [&](const char* part) { return pattern.find(part) != std::string::npos; };
  switch (config.loop.activation_checkpointing.part) {
    case config::CheckpointedPart::Blocks:
      return pattern.starts_with("blocks.");
    case config::CheckpointedPart::Attention:
      return has(".attn.");
    case config::CheckpointedPart::Mlp:
      return has(".mlp.");
    default:
      return false;
  }
}

bool leaves_node(const parallel::Mesh& mesh, parallel::AxisSet axes, int64_t of_node) {
  if (of_node == 0) return false;
  return std::ranges::any_of(mesh.groups(axes), [&](const std::vector<int64_t>& ranks) {
    return std::ranges::any_of(ranks, [&](int64_t rank) { return rank / of_node != ranks.front() / of_node; });
  });
}

std::string group_name(parallel::AxisSet axes) {
  if (axes.contains(parallel::Axis::Tp)) return "tp";
  if (!axes.contains(parallel::Axis::Cp)) return "spatial";
  return axes == parallel::Axis::Cp ? "cp" : "parts";
}

// A message from stage to stage is taken to be as large as the tokens, or as the results of a layer on average.
double message_values(const config::RunConfig& config, const model::ModelCost& cost) {
  const auto parts = static_cast<double>(config.parallel.context_parallel * config.parallel.spatial.size());
  double sum = 0, layers = 0;
  for (const model::LayerCost& layer : cost.layers) {
    if (layer.name == "patch_embed") return layer.results / parts;
    sum += layer.results;
    layers += layer.results > 0 ? 1 : 0;
  }
  return sum / std::max(1.0, layers) / parts;
}

// Adds the collectives of the model's own passes, of the rank in the middle of its blocks: halos are largest there.
void add_communication(const train::SetupSource& source, const EstimateOptions& options, EstimateMemo& memo,
                       plan::RunFacts& facts) {
  const config::RunConfig& config = source.config;
  const parallel::Mesh mesh = parallel::mesh_of(config.parallel, options.world, options.node_devices);
  const bool is_cut = config.parallel.spatial.size() > 1 || config.parallel.context_io == config::ContextIo::Sharded;
  const parallel::AxisSet exchange = is_cut ? parallel::kDp | parallel::kSampleParts : parallel::kDp;
  facts.exchange_leaves_node = leaves_node(mesh, exchange, options.node_devices);
  facts.stages_leave_node = leaves_node(mesh, parallel::Axis::Pp, options.node_devices);
  facts.message_values = message_values(config, facts.cost);
  const auto plan = train::plan_of(mesh, source);
  if (!plan || facts.cost.layers.empty()) return;
  const model::Model* model = parallel::reads_layers(*plan) ? model_of(source, memo).get() : nullptr;
  const auto group = mesh.group_of(0, parallel::kSpatial);
  const int64_t rank = group.ranks[static_cast<size_t>(group.size() / 2)];
  const auto is_made_again = [&](const std::string& pattern) { return runs_again(config, pattern); };
  for (const parallel::PlanCalls& calls : parallel::plan_traffic(*plan, model, facts.cost, mesh, rank, is_made_again)) {
    facts.collectives.push_back({.group = group_name(calls.axes),
                                 .kind = plan::collective_named(calls.name).value(),
                                 .ranks = mesh.size(calls.axes),
                                 .leaves_node = leaves_node(mesh, calls.axes, options.node_devices),
                                 .calls = calls.calls,
                                 .values = calls.values,
                                 .is_wide = calls.is_wide,
                                 .is_beside = calls.is_beside});
  }
}

}  // namespace

void check_layout_of(const train::Registries& registries, const config::RunConfig& config, int64_t world) {
  const auto spec = spec_of_keys(registries, config);
  if (spec) train::checked_stages(parallel::mesh_of(config.parallel, world), {config, registries, *spec});
}

plan::RunEstimate estimate_of(const Application& application, const config::CommandLine& line, const EstimateOptions& options) {
  const int64_t world = options.world;
  const train::Registries& registries = application.registries;
  config::RunConfig config = config::resolve(line, world, registries.known_names()).config;
  const model::ModelEntry& entry = registries.models.at(config.model.model);
  if (!entry.cost) {
    throw ConfigError("plan", cat("the model has no cost: model=", config.model.model), "Give its ModelEntry a cost");
  }
  EstimateMemo own;
  EstimateMemo& memo = options.memo != nullptr ? *options.memo : own;
  const train::DatasetFacts& data =
      made_once(memo, memo.data, [&] { return facts_of(registries.datasets.at(config.data.dataset), config); });
  const data::SampleSpec spec = spec_of(data.shape);
  train::SetupSource source{config, registries, spec};
  const parallel::Mesh mesh = parallel::mesh_of(config.parallel, world);
  if (mesh.size(parallel::Axis::Pp) > 1) {
    const model::ModelPtr& model = model_of(source, memo);
    source.outline = &made_once(memo, memo.outline, [&] { return train::outline_of(model, source); });
  }
  const std::vector<parallel::StageRange> stages = train::checked_stages(mesh, source);
  const parallel::ContextMode mode =
      parallel::context_mode_of(config, data.shape, mesh, config.loop.device != config::DeviceChoice::Cpu);
  config.parallel.context_mode = config::choice_named<config::ContextMode>(parallel::context_mode_name(mode)).value();
  int64_t points = 1;
  for (const int64_t extent : data.shape.grid) points *= extent;
  plan::RunFacts facts{.cost = entry.cost(config.model, data.shape),
                       .sample_values = (data.shape.in_channels + data.shape.out_channels) * points,
                       .input_values = data.shape.in_channels * points,
                       .step_values = (data.shape.out_channels + known_channels(data.shape)) * points,
                       .samples_per_epoch = data.samples,
                       .optimizer_states = registries.optimizers.at(config.optimizer.optimizer).states(config.optimizer),
                       .frozen_parameters = frozen_parameters(source, memo),
                       .widens_matmuls = widens_matmuls(config),
                       .world_size = world};
  if (entry.memory) facts.memory = entry.memory(config, data.shape);
  facts.flops_per_second = options.flops_per_second;
  add_pipeline(source, stages, mesh.size(parallel::kDp), memo, facts);
  add_communication(source, options, memo, facts);
  return plan::estimate_run(config, facts);
}

}  // namespace welkin::apps
