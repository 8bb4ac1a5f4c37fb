// SPDX-License-Identifier: Apache-2.0
// Shared by evaluate and predict: finds the run. Either its folder, `welkin evaluate RUN_FOLDER [FLAGS]`, whose config.yaml
// then holds, or the flags that it was trained with.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/application.h"
#include "config/flags/command_line.h"
#include "train/evaluate/trained_model.h"

namespace welkin::apps {

inline constexpr int64_t kWholeModels = 0;

struct TrainedRun {
  config::CommandLine line;  // with the verb's own flags in `extra`
  config::RunConfig config;
  train::ModelChoice choice;
};

// Nothing when help was requested and printed. `extra`: the verb's flags besides --checkpoint and --split; `operand`: the word
// behind the run folder, for the help. A model package stands for its run folder. `processes` take part. ConfigError if each
// process holds a whole model (kWholeModels) and the flags divide one.
std::optional<TrainedRun> parse_trained_run(Application& application, int argc, char** argv, std::vector<config::ExtraFlag> extra,
                                            const std::string& operand = "", int64_t processes = kWholeModels);

// Opens the model for callers with fields of their own. A package's model needs no data; a run's model opens the run's data.
std::unique_ptr<train::TrainedModel> open_model(const train::Registries& registries, const TrainedRun& run);

// Calls `work` with the run's model. Out of memory throws the same error as in welkin train.
void with_trained_model(Application& application, const TrainedRun& run,
                        const std::function<void(const train::TrainedModel&)>& work);

}  // namespace welkin::apps
