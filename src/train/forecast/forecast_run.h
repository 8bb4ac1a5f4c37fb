// SPDX-License-Identifier: Apache-2.0
// Makes a forecast and writes it field by field. Replicas of the models make units of their own (forecast_units.h); none waits
// for another but at the beginning and at the end. The ranks of a replica make each unit together, and its first rank writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/forecast/field_states.h"
#include "data/forecast/forecast_layout.h"
#include "data/forecast/forecast_store.h"
#include "parallel/comm/world.h"
#include "train/evaluate/trained_model.h"
#include "train/forecast/forecast_units.h"
#include "train/forecast/initial_states.h"
#include "train/forecast/state_step.h"

namespace welkin::train {

struct EnsembleOptions {
  std::filesystem::path output;  // .zarr or .nc
  std::string from = "newest";   // data/forecast/forecast_starts.h
  int64_t steps = 1, members = 1;
  EnsembleStart ensemble{};
  bool has_dropout = false;
  std::string source;  // which program made it, for the file's attributes
  std::string inputs;  // what else decides the fields: a file that was begun with others is not gone on with
};

class ForecastRun {
 public:
  // `models` are of one configuration, at least one; all that is passed outlives the run. Errors of choose_starts(), StateStep
  // and ForecastStore::check().
  ForecastRun(const data::FieldStates& fields, std::vector<const TrainedModel*> models, EnsembleOptions options,
              const parallel::World& world);

  int64_t num_units() const { return static_cast<int64_t>(units_.size()); }
  const std::vector<int64_t>& starts() const { return layout_.starts; }

  // Every rank calls it. `progress` is told how many of this replica's fields of a time are made, and of how many. Returns the
  // number of the members that this rank wrote and whose last field is not finite.
  int64_t run(const std::function<void(int64_t, int64_t)>& progress);

 private:
  void lay_out();
  std::string request_text() const;
  std::string sources() const;
  void run_unit(const ForecastUnit& unit, int64_t number, const std::function<void()>& made);
  void write(const ForecastUnit& unit, int64_t lead, const at::Tensor& prediction, const at::Tensor& holes);

  const data::FieldStates& fields_;
  std::vector<const TrainedModel*> models_;
  EnsembleOptions options_;
  const parallel::World& world_;
  StateStep step_;
  InitialStates initial_;
  data::ForecastLayout layout_;
  std::vector<ForecastUnit> units_;
  std::string request_;
  std::unique_ptr<data::ForecastStore> store_;
  int64_t nonfinite_ = 0;
};

}  // namespace welkin::train
