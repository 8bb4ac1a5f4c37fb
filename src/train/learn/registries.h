// SPDX-License-Identifier: Apache-2.0
// Everything that can be built by name. Made by the entry of libwelkin.so, passed down, never global. A plug-in defines
//   extern "C" void welkin_register(welkin::train::Registries& registries);
// and adds its rows there; a name that is taken is a ConfigError.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "config/draft/known_names.h"
#include "data/datasets/open.h"
#include "data/online/online_data.h"
#include "data/online/pair_stream.h"
#include "data/sample/dataset.h"
#include "model/registry.h"
#include "parallel/plans/plans.h"
#include "train/learn/factory_registry.h"
#include "train/learn/loss.h"
#include "train/learn/lr_schedule.h"
#include "train/optim/optimizer.h"

namespace welkin::train {

// Facts that a configuration states about a data set whose files are not there yet.
struct DatasetFacts {
  model::ModelShape shape;
  std::optional<int64_t> samples;  // of a training epoch; nothing if only the files know
};

// A row: how a data set is opened, and facts about it. Only `open` is required.
struct DatasetEntry {
  std::function<std::unique_ptr<data::Dataset>(const config::RunConfig&, data::Split)> open;
  std::function<DatasetFacts(const config::RunConfig&)> facts = {};  // for plan estimate, which otherwise opens the data
  bool drops_last = false;                                           // a training epoch ends with its last whole batch
  std::shared_ptr<data::PairStream> stream = {};                     // of pairs that come during the run, each read once
};

// `states`: float32 values that the optimizer keeps for each weight, for plan estimate. `scope`: whether its parameters may be
// updated one after the other, each with its own optimizer (key `offload`).
struct OptimizerEntry {
  OptimizerFactory make;
  std::function<double(const config::OptimizerConfig&)> states = [](const config::OptimizerConfig&) { return 2; };
  UpdateScope scope = UpdateScope::Model;
};

struct Registries {
  model::Registry models;                             // key `model`
  FactoryRegistry<DatasetEntry> datasets{"dataset"};  // key `dataset`
  FactoryRegistry<LossFactory> losses{"loss"};
  FactoryRegistry<LrScheduleFactory> schedules{"schedule"};
  FactoryRegistry<OptimizerEntry> optimizers{"optimizer"};

  FactoryRegistry<parallel::PlanEntry> plans{"plan of model"};  // by the model's name: how tp and cp split it

  // The names against which config::resolve checks `model`, `dataset`, ...
  config::KnownNames known_names() const;
};

// Replaces the data set `online` by one whose pairs come through this stream. Null: no program hands pairs over.
void add_online(FactoryRegistry<DatasetEntry>& datasets, const data::OnlineFacts& facts,
                const std::shared_ptr<data::PairStream>& stream);

// Adds the rows of this library.
void add_builtins(Registries& registries);

}  // namespace welkin::train
