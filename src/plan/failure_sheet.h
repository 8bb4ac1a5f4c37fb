// SPDX-License-Identifier: Apache-2.0
// What failures and checkpoints leave of a job's time, and the interval between checkpoints that costs least.
#pragma once

#include <optional>

#include "plan/figures.h"

namespace welkin::plan {

struct FailureQuestion {
  double mtbf_hours = 0;  // mean time between failures of a node; above 0
  double nodes = 1;
  double save_seconds = 0;                // by which a checkpoint holds training
  std::optional<double> write_seconds{};  // until it is published; nothing: no longer
  double restart_seconds = 0;             // from a failure until training goes on
  std::optional<double> step_seconds{};   // nothing: no steps are given
};

// Young's and Daly's interval and the goodput to expect (core/fault/failure_model.h).
Section failure_sheet(const FailureQuestion& question);

}  // namespace welkin::plan
