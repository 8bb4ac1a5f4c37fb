// SPDX-License-Identifier: Apache-2.0
// `activation_checkpointing: budget:GIB`: chooses the parts that run again, so that a step takes at most so much memory of its
// device, all included (weights, gradients, states, activations, buffers of batches), and as little time as possible.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/step/setup.h"
#include "train/step/step_probe.h"

namespace welkin::train {

struct BudgetChoice {
  std::vector<std::string> sites;  // that run again
  int64_t peak_bytes = 0;          // of tensors in a step, predicted
  double step_seconds = 0;         // predicted, without waiting for data
  std::string note;                // for the log
};

// The choice for a measured step. ConfigError with the least possible memory if the budget is below it.
BudgetChoice choose_within(const ProbedStep& probed, const config::RunConfig& config);

// Measures and chooses, in a few steps. Every rank calls it, and all choose the same.
BudgetChoice choose_for_budget(const Layout& layout, const SetupSource& source, const RunLength& length);

}  // namespace welkin::train
