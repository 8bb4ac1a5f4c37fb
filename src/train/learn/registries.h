// SPDX-License-Identifier: Apache-2.0
// Everything that can be built by name. Made by the entry of libwelkin.so, passed down, never global. A plug-in defines
//   extern "C" void welkin_register(welkin::train::Registries& registries);
// and adds its rows there; a name that is taken is a ConfigError.
#pragma once

#include <functional>
#include <memory>

#include "config/resolve/resolve.h"
#include "data/sample/dataset.h"
#include "data/sets/open.h"
#include "model/registry.h"
#include "parallel/plans/plans.h"
#include "train/learn/loss.h"
#include "train/learn/named_factories.h"
#include "train/learn/optimizer.h"
#include "train/learn/schedule.h"

namespace welkin::train {

using DatasetFactory = std::function<std::unique_ptr<data::Dataset>(const config::RunConfig&, data::Split)>;

struct Registries {
  model::Registry models;                              // key `model`
  NamedFactories<DatasetFactory> datasets{"dataset"};  // key `dataset`
  NamedFactories<LossFactory> losses{"loss"};
  NamedFactories<ScheduleFactory> schedules{"schedule"};
  NamedFactories<OptimizerFactory> optimizers{"optimizer"};

  NamedFactories<parallel::PlanFactory> plans{"plan of model"};  // by the model's name: how tp and cp split it

  // What config::resolve checks `model`, `dataset`, ... against.
  config::KnownNames known_names() const;
};

// The rows of this library.
void add_builtins(Registries& registries);

}  // namespace welkin::train
