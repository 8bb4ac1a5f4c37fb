// SPDX-License-Identifier: Apache-2.0
// What evaluate and predict share: which run is meant. Either its folder, `welkin evaluate RUN_FOLDER [FLAGS]`, whose config.yaml
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

struct TrainedRun {
  config::CommandLine line;  // with the verb's own flags in `extra`
  config::RunConfig config;
  train::ModelChoice choice;
};

// Nothing when help was asked for and printed. `extra` are the verb's flags besides --checkpoint and --split; `operand` is what
// it takes behind the run folder, for the help. A model package stands for its run folder. `processes` take part.
std::optional<TrainedRun> parse_trained_run(Application& application, int argc, char** argv, std::vector<config::ExtraFlag> extra,
                                            const std::string& operand = "", int64_t processes = kWorldSize);

// For what calls the model with fields of its own: the model of a package needs no data, that of a run opens the run's.
std::unique_ptr<train::TrainedModel> open_model(const train::Registries& registries, const TrainedRun& run);

// The model of the run, for `work`. Out of memory is the error that welkin train gives.
void with_trained_model(Application& application, const TrainedRun& run,
                        const std::function<void(const train::TrainedModel&)>& work);

}  // namespace welkin::apps
