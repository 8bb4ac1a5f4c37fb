// SPDX-License-Identifier: Apache-2.0
// Phases of a run, from the wall times of its scalars: epochs of training, and the validation behind each.
#pragma once

#include <cstddef>
#include <vector>

#include "observe/report/run_history.h"

namespace welkin::observe {

// Seconds since the run's first event.
struct RunPhase {
  double begin = 0, end = 0;
  bool is_training = true;  // false: validation, with plots and checkpoints after an epoch
};

struct RunPhases {
  std::vector<RunPhase> shown{};  // in order, at most as many as requested: a short phase is merged into the one before it
  double training_s = 0, validation_s = 0;  // of all phases
};

RunPhases run_phases(const RunHistory& run, size_t most);

}  // namespace welkin::observe
