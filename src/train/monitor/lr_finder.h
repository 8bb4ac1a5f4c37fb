// SPDX-License-Identifier: Apache-2.0
// welkin train --find_lr: the learning rate range test on the run's own model, data and optimizer. It is a separate run: its
// final weights are of no use, and it saves only the curve.
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

// Makes steps until the test is over. Every rank calls it and gets the same points. The set-up's rates are replaced by those of
// the test. Interrupted if a rank was asked to stop.
LrRange find_lr(LrFinderParts parts, const LrRangeOptions& options);

// Writes lr_find.csv and lr_find.svg.
void write_lr_range(const LrRange& range, const std::filesystem::path& folder);

// Text for the log; ConfigError if no rate can be suggested.
std::string describe_lr(const LrRange& range, const config::RunConfig& config);

// The value for the key lr, which `scaling` then multiplies: the rate of steepest descent, to two significant digits.
double suggested_lr(const LrRange& range, const config::RunConfig& config);

}  // namespace welkin::train
