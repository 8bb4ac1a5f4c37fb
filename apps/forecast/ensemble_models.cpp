// SPDX-License-Identifier: Apache-2.0
#include "apps/forecast/ensemble_models.h"

#include <optional>
#include <sstream>

#include "apps/cli/flags.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::apps {
namespace {

std::optional<data::TimeStep> given_step(const config::CommandLine& line) {
  const std::string text = text_flag(line, "time_step");
  if (text.empty()) return {};
  return data::TimeStep{.seconds = data::parse_duration(text), .months = 0};
}

void check_given_step(const config::CommandLine& line, const data::TimeStep& step) {
  const auto given = given_step(line);
  if (!given || given->seconds == step.seconds) return;
  throw ConfigError("forecast",
                    cat("the data have another step: --time_step=", text_flag(line, "time_step"),
                        ", step=", step.months != 0 ? cat(step.months, " month") : cat(hours_of(step), " h")),
                    "Leave it out");
}

}  // namespace

std::vector<std::string> words_between_commas(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream parts(text);
  for (std::string word; std::getline(parts, word, ',');) words.push_back(word);
  return words;
}

EnsembleModels::EnsembleModels(Application& application, const TrainedRun& run, bool has_dropout) {
  std::vector<std::string> checkpoints = words_between_commas(text_flag(run.line, "checkpoints"));
  if (checkpoints.empty()) checkpoints.push_back(run.choice.checkpoint);
  train::ModelChoice choice = run.choice;
  for (const std::string& checkpoint : checkpoints) {
    choice.checkpoint = checkpoint;
    auto fields = std::make_unique<data::FieldStates>(run.config, choice.split, text_flag(run.line, "states"),
                                                      given_step(run.line), text_flag(run.line, "forcings"));
    if (fields_ == nullptr) fields_ = fields.get();
    check_given_step(run.line, fields->step());
    models_.push_back(std::make_unique<train::TrainedModel>(application.registries, run.config, choice, std::move(fields)));
    if (has_dropout) models_.back()->enable_dropout();
  }
}

std::vector<const train::TrainedModel*> EnsembleModels::models() const {
  std::vector<const train::TrainedModel*> models;
  for (const auto& model : models_) models.push_back(model.get());
  return models;
}

void check_ensemble(const train::EnsembleOptions& options, const std::vector<const train::TrainedModel*>& models) {
  const size_t num_models = models.size();
  if (options.has_dropout && models.front()->config().model.dropout == 0) {
    throw ConfigError("forecast", "members of a model without dropout do not differ by it: dropout=0, --with_dropout",
                      "Give --perturb or more --checkpoints");
  }
  if (options.members < static_cast<int64_t>(num_models)) {
    throw ConfigError("forecast", cat("more checkpoints than members: members=", options.members, ", checkpoints=", num_models),
                      "Ask for at least one member of each checkpoint");
  }
  for (size_t i = 0; i < num_models; ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (models[i]->checkpoint() != models[j]->checkpoint()) continue;
      throw ConfigError("forecast", cat("two of the checkpoints are one: checkpoint=", models[i]->checkpoint().string()),
                        "Name different ones; best and newest may be the same step");
    }
  }
  const bool differ = options.ensemble.perturbation.kind != train::PerturbationKind::None || options.has_dropout;
  if (options.members <= static_cast<int64_t>(num_models) || differ) return;
  throw ConfigError("forecast", cat("nothing makes the members differ: members=", options.members, ", checkpoints=", num_models),
                    "Give --perturb, --with_dropout or more --checkpoints");
}

}  // namespace welkin::apps
