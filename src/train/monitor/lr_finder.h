// SPDX-License-Identifier: Apache-2.0
// welkin train --find_lr: the learning rate range test on the run's own model, data and optimizer. It is a run of its own: the
// weights that it leaves are of no use, and nothing is saved but the curve.
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <functional>
#include <string>

#include "train/monitor/lr_range.h"
#include "train/step/setup.h"
#include "train/step/step.h"

namespace welkin::train {

struct LrFinderParts {
  TrainSetup& setup;
  const config::RunConfig& config;
  StepOptions step;                        // device, ranks, size of the data set
  Step::Source next;                       // micro-batches, over the ends of epochs
  std::function<bool()> stop_requested{};  // of this rank
};

// Steps until the test is over. Every rank calls it and gets the same points. The set-up's rates become those of the test.
// Interrupted where a rank was asked to stop.
LrRange find_lr(LrFinderParts parts, const LrRangeOptions& options);

// lr_find.csv and lr_find.svg.
void write_lr_range(const LrRange& range, const std::filesystem::path& folder);

// For the log; ConfigError where no rate can be suggested.
std::string describe_lr(const LrRange& range, const config::RunConfig& config);

// The value to give to the key lr, for which `scaling` multiplies: two significant digits of the steepest descent.
double suggested_lr(const LrRange& range, const config::RunConfig& config);

}  // namespace welkin::train
