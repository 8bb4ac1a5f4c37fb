// SPDX-License-Identifier: Apache-2.0
// Goodput of a job under failures and checkpoints, and the cheapest interval between checkpoints.
#pragma once

#include <optional>

#include "plan/figures.h"

namespace welkin::plan {

struct FailureQuestion {
  double mtbf_hours = 0;  // mean time between failures of a node; above 0
  double nodes = 1;
  double save_seconds = 0;                // time for which a checkpoint blocks training
  std::optional<double> write_seconds{};  // until the checkpoint is published; nothing: save_seconds
  double restart_seconds = 0;             // from a failure until training goes on
  std::optional<double> step_seconds{};   // nothing: the interval is not given in steps
};

// Young's and Daly's interval and the expected goodput (core/fault/failure_model.h).
Section failure_sheet(const FailureQuestion& question);

}  // namespace welkin::plan
