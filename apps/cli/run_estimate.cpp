// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/run_estimate.h"

#include <algorithm>
#include <utility>

#include "config/resolve/resolve.h"
#include "core/error.h"
#include "core/text.h"
#include "ops/gemm/mixed_matmul.h"
#include "parallel/mesh/run_mesh.h"
#include "parallel/shard/param_table.h"
#include "parallel/tokens/context_choice.h"
#include "train/learn/registries.h"
#include "train/step/freeze.h"
#include "train/step/layout.h"
#include "train/step/model_setup.h"

namespace welkin::apps {
namespace {

// By the keys alone where the data set can say it so; else by opening it.
train::DatasetFacts facts_of(const train::DatasetEntry& entry, const config::RunConfig& config) {
  if (entry.facts) {
    train::DatasetFacts facts = entry.facts(config);
    if (facts.shape.out_channels > 0) return facts;  // else the channels follow from roles that the files say
  }
  const auto dataset = entry.open(config, data::Split::Train);
  return {.shape = train::shape_of(dataset->spec()), .samples = dataset->size()};
}

// Of a model that is built to read the names of its parameters: nothing writes to them, so they take no memory.
int64_t frozen_parameters(const model::ModelEntry& entry, const config::RunConfig& config, const model::ModelShape& shape) {
  if (config.optimizer.freeze.empty()) return 0;
  const model::ModelPtr model = entry.build(config.model, shape);
  const auto table = parallel::ParamTable::of(*model);
  train::freeze_parameters(table, config.optimizer.freeze);
  int64_t frozen = 0;
  for (const parallel::ParamRow& row : table.rows()) frozen += row.local.requires_grad() ? 0 : row.local.numel();
  return frozen;
}

// Of the newest input step what no prediction gives.
int64_t known_channels(const model::ModelShape& shape) {
  const auto undefined = std::ranges::count(shape.earlier, -1);
  return std::max<int64_t>(0, shape.in_channels - shape.newest_input_channel - (shape.out_channels - undefined));
}

bool widens_matmuls(const config::RunConfig& config) {
  if (config.precision.amp_mode == config::AmpMode::None) return false;
  const bool is_half = config.precision.amp_mode == config::AmpMode::Fp16;
  return ops::upcasts_matmul(at::kCPU, is_half ? at::kHalf : at::kBFloat16);
}

}  // namespace

void check_layout_of(const train::Registries& registries, const config::RunConfig& config, int64_t world) {
  const train::DatasetEntry& entry = registries.datasets.at(config.data.dataset);
  const model::ModelShape shape = entry.facts ? entry.facts(config).shape : model::ModelShape();
  if (shape.in_channels == 0 || shape.out_channels == 0) return;
  data::SampleSpec spec;
  spec.newest_input_channel = shape.newest_input_channel;
  spec.earlier_target = shape.earlier;
  for (const auto& [array, channels] : {std::pair{&spec.input, shape.in_channels}, std::pair{&spec.target, shape.out_channels}}) {
    array->shape = shape.grid;
    array->shape.insert(array->shape.begin(), channels);
    array->channels.resize(static_cast<size_t>(channels));
  }
  train::check_layout(parallel::mesh_of(config.parallel, world), {config, registries, spec});
}

plan::RunEstimate estimate_of(const Application& application, const config::CommandLine& line, int64_t world,
                              std::optional<double> flops_per_second) {
  const train::Registries& registries = application.registries;
  config::RunConfig config = config::resolve(line, world, registries.known_names()).config;
  const model::ModelEntry& entry = registries.models.at(config.model.model);
  if (!entry.cost) {
    throw ConfigError("plan", cat("the model has no cost: model=", config.model.model), "Give its ModelEntry a cost");
  }
  check_layout_of(registries, config, world);
  const train::DatasetFacts data = facts_of(registries.datasets.at(config.data.dataset), config);
  const parallel::ContextMode mode = parallel::context_mode_of(config, data.shape, parallel::mesh_of(config.parallel, world),
                                                               config.loop.device != config::DeviceChoice::Cpu);
  config.parallel.context_mode = config::choice_named<config::ContextMode>(parallel::context_mode_name(mode)).value();
  int64_t points = 1;
  for (const int64_t extent : data.shape.grid) points *= extent;
  plan::RunFacts facts{.cost = entry.cost(config.model, data.shape),
                       .sample_values = (data.shape.in_channels + data.shape.out_channels) * points,
                       .input_values = data.shape.in_channels * points,
                       .step_values = (data.shape.out_channels + known_channels(data.shape)) * points,
                       .samples_per_epoch = data.samples,
                       .optimizer_states = registries.optimizers.at(config.optimizer.optimizer).states(config.optimizer),
                       .frozen_parameters = frozen_parameters(entry, config, data.shape),
                       .widens_matmuls = widens_matmuls(config),
                       .world_size = world};
  if (entry.memory) facts.memory = entry.memory(config, data.shape);
  facts.flops_per_second = flops_per_second;
  return plan::estimate_run(config, facts);
}

}  // namespace welkin::apps
