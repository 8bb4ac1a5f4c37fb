// SPDX-License-Identifier: Apache-2.0
#include "train/learn/registries.h"

#include "config/schema/builtin_models.h"
#include "data/sample/channels/forcing.h"

namespace welkin::train {
namespace {

void add_losses(FactoryRegistry<LossFactory>& losses) {
  losses.add("relative_l2", [](const config::RunConfig&) { return relative_l2(); });
  losses.add("mse", [](const config::RunConfig&) { return mean_square(); });
  losses.add("mae", [](const config::RunConfig&) { return mean_absolute(); });
  losses.add("huber", [](const config::RunConfig& config) { return huber(config.loss.huber_delta); });
  losses.add("l1_rho", [](const config::RunConfig& config) { return l1_rho(config.loss.lambda_rho); });
}

void add_schedules(FactoryRegistry<LrScheduleFactory>& schedules) {
  schedules.add("constant", constant_schedule);
  schedules.add("linear", linear_schedule);
  schedules.add("cosine", cosine_schedule);
  schedules.add("table", table_schedule);
  schedules.add("unet_tutorial", unet_tutorial_schedule);
  schedules.add("vit_tutorial", vit_tutorial_schedule);
}

double states_of_adam(const config::OptimizerConfig& config) {
  if (config.optimizer_state == config::OptimizerState::Bits8)
    return 2 * (0.25 + 1.0 / 256);  // codes, and a scale for each block
  return config.optimizer_state == config::OptimizerState::Bf16 ? 1 : 2;
}

double one_state(const config::OptimizerConfig& /*config*/) { return 1; }

void add_optimizers(FactoryRegistry<OptimizerEntry>& optimizers) {
  constexpr auto kElement = UpdateScope::Element, kParameter = UpdateScope::Parameter;
  optimizers.add("Adam", {.make = adam, .states = states_of_adam, .scope = kElement});
  optimizers.add("AdamW", {.make = adamw, .states = states_of_adam, .scope = kElement});
  optimizers.add("SGD", {.make = sgd,
                         .states = [](const config::OptimizerConfig& config) { return config.momentum > 0 ? 1 : 0; },
                         .scope = kElement});
  optimizers.add("Lion", {.make = lion, .states = one_state, .scope = kElement});
  optimizers.add("LAMB", {.make = lamb, .scope = kParameter});
  optimizers.add("LARS", {.make = lars, .states = one_state, .scope = kParameter});
  // Rows and columns are less than a hundredth of a matrix.
  optimizers.add("Adafactor", {.make = adafactor,
                               .states = [](const config::OptimizerConfig& config) { return config.adafactor_factored ? 0 : 1; },
                               .scope = kParameter});
  optimizers.add("Muon", {.make = muon, .states = one_state, .scope = kParameter});  // the rest, with two, is small
}

DatasetFacts field_facts(const config::RunConfig& config) {
  const config::ModelConfig& model = config.model;
  if (model.n_in_channels == 0 || model.n_out_channels == 0) return {.shape = {}, .samples = {}};  // the files know
  int64_t forcing = 0;
  for (const std::string& name : config.data.forcing) {
    forcing += static_cast<int64_t>(data::channel_names(data::parse_forcing(name)).size());
  }
  return {.shape = {.in_channels = config.data.history * model.n_in_channels + forcing,
                    .out_channels = model.n_out_channels,
                    .grid = model.img_size,
                    .newest_input_channel = (config.data.history - 1) * model.n_in_channels},
          .samples = config.data.limit_nsamples};
}

DatasetFacts box_facts(const config::RunConfig& config) {
  return {.shape = {.in_channels = config.model.N_in_channels,
                    .out_channels = config.model.N_out_channels,
                    .grid = {config.data.data_size, config.data.data_size, config.data.data_size}},
          .samples = config.data.Nsamples};
}

DatasetFacts online_facts(const config::RunConfig& config) {
  const data::SampleSpec spec = data::online_spec(config, {});
  return {.shape = {.in_channels = spec.input.shape.front(),
                    .out_channels = spec.target.shape.front(),
                    .grid = {spec.input.shape.begin() + 1, spec.input.shape.end()}},
          .samples = config.data.limit_nsamples};
}

// The ViT tutorials' loaders drop a shorter last batch, the U-Net's keep it.
void add_datasets(FactoryRegistry<DatasetEntry>& datasets) {
  datasets.add("era5", {.open = data::open_fields, .facts = field_facts, .drops_last = true});
  datasets.add("nbody", {.open = data::open_boxes, .facts = box_facts});
  add_online(datasets, {}, nullptr);
}

}  // namespace

config::KnownNames Registries::known_names() const {
  return {.models = models.names(),
          .datasets = datasets.names(),
          .losses = losses.names(),
          .optimizers = optimizers.names(),
          .schedules = schedules.names(),
          .default_losses = models.default_losses()};
}

void add_online(FactoryRegistry<DatasetEntry>& datasets, const data::OnlineFacts& facts,
                const std::shared_ptr<data::PairStream>& stream) {
  datasets.replace(std::string(config::kOnline),
                   {.open = [facts, stream](const config::RunConfig& config,
                                            data::Split split) { return data::open_online(config, split, facts, stream); },
                    .facts = online_facts,
                    .drops_last = true,
                    .stream = stream});
}

void add_builtins(Registries& registries) {
  model::add_builtin_models(registries.models);
  add_datasets(registries.datasets);
  const parallel::AxisSet token_axes = parallel::Axis::Tp | parallel::Axis::Cp | parallel::Axis::H | parallel::Axis::W;
  registries.plans.add("vit", {parallel::vit_plan_of, token_axes});
  registries.plans.add("afno", {parallel::afno_plan_of, token_axes, /*has_context_modes=*/false});
  registries.plans.add("sfno", {parallel::sfno_plan_of, parallel::Axis::Tp | parallel::Axis::H | parallel::Axis::W});
  registries.plans.add("swin", {parallel::swin_plan_of, token_axes, /*has_context_modes=*/false});
  registries.plans.add("unet2d", {parallel::unet2d_plan_of, parallel::Axis::Tp | parallel::Axis::H | parallel::Axis::W});
  registries.plans.add("unet3d", {parallel::unet_plan_of, parallel::Axis::Tp | parallel::kSpatial});
  add_losses(registries.losses);
  add_schedules(registries.schedules);
  add_optimizers(registries.optimizers);
}

}  // namespace welkin::train
