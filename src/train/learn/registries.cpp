// SPDX-License-Identifier: Apache-2.0
#include "train/learn/registries.h"

namespace welkin::train {
namespace {

void add_losses(FactoryRegistry<LossFactory>& losses) {
  losses.add("relative_l2", [](const config::RunConfig&) { return relative_l2(); });
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

void add_optimizers(FactoryRegistry<OptimizerFactory>& optimizers) {
  optimizers.add("Adam", adam);
  optimizers.add("AdamW", adamw);
  optimizers.add("SGD", sgd);
}

}  // namespace

config::KnownNames Registries::known_names() const {
  return {.models = models.names(),
          .datasets = datasets.names(),
          .losses = losses.names(),
          .optimizers = optimizers.names(),
          .schedules = schedules.names()};
}

void add_builtins(Registries& registries) {
  model::add_builtin_models(registries.models);
  for (const char* name : {"era5", "nbody"}) registries.datasets.add(name, data::open_dataset);
  registries.plans.add("vit", parallel::vit_plan_of);
  add_losses(registries.losses);
  add_schedules(registries.schedules);
  add_optimizers(registries.optimizers);
}

}  // namespace welkin::train
