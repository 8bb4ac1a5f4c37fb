// SPDX-License-Identifier: Apache-2.0
// A run inside of another program, which has the terminal and the signals: `welkin train` of one process, whose log is in the
// run's folder alone.
#pragma once

#include <functional>
#include <string>

#include "config/resolve/resolve.h"
#include "core/process/signals.h"
#include "train/learn/registries.h"
#include "train/run/trainer_context.h"

namespace welkin::train {

// What it refers to outlives the run.
struct HostedRun {
  const config::Resolved& resolved;
  const Registries& registries;
  const InterruptWatch& interrupt;
  std::string init_from{};
  RunListener* listener = nullptr;
  std::function<void(const std::string&)> warn{};  // what the user is to hear at once; any thread
};

// To the end, or to where the interrupt leads. The errors of Trainer.
RunOutcome run_hosted(const HostedRun& run);

}  // namespace welkin::train
