// SPDX-License-Identifier: Apache-2.0
// Everything that can be built by name. Made by the entry of libwelkin.so, passed down, never global. A plug-in defines
//   extern "C" void welkin_register(welkin::train::Registries& registries);
// and adds its rows there; a name that is taken is a ConfigError.
#pragma once

#include <functional>
#include <memory>

#include "config/resolve/resolve.h"
#include "data/datasets/open.h"
#include "data/sample/dataset.h"
#include "model/registry.h"
#include "parallel/plans/plans.h"
#include "train/learn/factory_registry.h"
#include "train/learn/loss.h"
#include "train/learn/lr_schedule.h"
#include "train/learn/optimizer.h"

namespace welkin::train {

using DatasetFactory = std::function<std::unique_ptr<data::Dataset>(const config::RunConfig&, data::Split)>;

struct Registries {
  model::Registry models;                               // key `model`
  FactoryRegistry<DatasetFactory> datasets{"dataset"};  // key `dataset`
  FactoryRegistry<LossFactory> losses{"loss"};
  FactoryRegistry<LrScheduleFactory> schedules{"schedule"};
  FactoryRegistry<OptimizerFactory> optimizers{"optimizer"};

  FactoryRegistry<parallel::PlanFactory> plans{"plan of model"};  // by the model's name: how tp and cp split it

  // What config::resolve checks `model`, `dataset`, ... against.
  config::KnownNames known_names() const;
};

// The rows of this library.
void add_builtins(Registries& registries);

}  // namespace welkin::train
