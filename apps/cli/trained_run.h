// SPDX-License-Identifier: Apache-2.0
// Shared by evaluate and predict: finds the run. Either its folder, `welkin evaluate RUN_FOLDER [FLAGS]`, whose config.yaml
// then holds, or the flags that it was trained with.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/application.h"
#include "config/flags/command_line.h"
#include "launch/ranks.h"
#include "parallel/comm/world.h"
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

// The ranks of a verb that share out a trained model's work: checked before any of them waits for another, then joined.
// ConfigError for a layout that does not divide the ranks, and for --shard.
void check_ranks(const std::string& verb, const TrainedRun& run, const launch::RankInfo& place);
// Fills in `run.choice`: each rank loads the part of the model that the flags give it. Of ranks that share their samples the
// first alone writes its warnings to `err`. The world outlives the model.
parallel::World join_ranks(TrainedRun& run, const launch::RankInfo& place, std::ostream& err);

// Opens the model for callers with fields of their own. A package's model needs no data; a run's model opens the run's data.
std::unique_ptr<train::TrainedModel> open_model(const train::Registries& registries, const TrainedRun& run);

// Calls `work` with the run's model. Out of memory throws the same error as in welkin train.
void with_trained_model(Application& application, const TrainedRun& run,
                        const std::function<void(const train::TrainedModel&)>& work);

}  // namespace welkin::apps
