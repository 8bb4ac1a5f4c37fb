// SPDX-License-Identifier: Apache-2.0
// A call of `welkin train`: its arguments, and the run of one world of ranks.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "apps/cli/application.h"
#include "apps/cli/elastic_run.h"
#include "config/flags/command_line.h"
#include "config/resolve/resolve.h"
#include "core/process/signals.h"
#include "core/stopwatch.h"
#include "launch/ranks.h"
#include "parallel/comm/world.h"
#include "train/device/memory_snapshot.h"
#include "train/inject/fault_injector.h"
#include "train/run/trainer.h"

namespace welkin::apps {

// Shared by all rounds of a run: everything except the ranks.
struct TrainCall {
  Application& application;
  int argc;
  char** argv;
  const config::CommandLine& line;
  train::ProfileOptions profile;
  train::interchange::InitialWeights weights;
  std::optional<train::LrRangeOptions> find_lr;
  std::string requeue_command;
  bool is_started_again;  // in the place of a lost process, whose steps this one does not know
  Stopwatch since_start;
  train::FaultInjector* faults;
  std::unique_ptr<train::MemorySnapshot> snapshot;
};

// Runs the training of these ranks, or their part of it. `round`: of an elastic job, else null.
RoundEnd train_in(TrainCall& call, const InterruptWatch& interrupt, const launch::RankInfo& place,
                  const config::Resolved& resolved, parallel::World& world, const RoundCall* round);

}  // namespace welkin::apps
