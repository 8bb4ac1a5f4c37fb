// SPDX-License-Identifier: Apache-2.0
// A run inside of another program, which owns the terminal and the signals: `welkin train` of one process, which logs to the
// run's folder alone.
#pragma once

#include <functional>
#include <string>

#include "config/resolve/resolve.h"
#include "core/process/signals.h"
#include "train/learn/registries.h"
#include "train/run/trainer_context.h"

namespace welkin::train {

// The objects that it refers to outlive the run.
struct HostedRun {
  const config::Resolved& resolved;
  const Registries& registries;
  const InterruptWatch& interrupt;
  std::string init_from{};
  RunListener* listener = nullptr;
  std::function<void(const std::string&)> warn{};  // gets what the user should hear at once; any thread
};

// Runs to the end, or until the interrupt stops it. Throws the errors of Trainer.
RunOutcome run_hosted(const HostedRun& run);

}  // namespace welkin::train
