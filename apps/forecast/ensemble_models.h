// SPDX-License-Identifier: Apache-2.0
// The models of an ensemble: one of each named checkpoint, with their initial states.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/cli/trained_run.h"
#include "train/forecast/forecast_run.h"

namespace welkin::apps {

std::vector<std::string> words_between_commas(const std::string& text);

class EnsembleModels {
 public:
  EnsembleModels(Application& application, const TrainedRun& run, bool has_dropout);

  const data::FieldStates& fields() const { return *fields_; }
  std::vector<const train::TrainedModel*> models() const;

 private:
  std::vector<std::unique_ptr<train::TrainedModel>> models_;
  const data::FieldStates* fields_ = nullptr;  // of the first model
};

// ConfigError if all members would be equal.
void check_ensemble(const train::EnsembleOptions& options, const std::vector<const train::TrainedModel*>& models);

}  // namespace welkin::apps
