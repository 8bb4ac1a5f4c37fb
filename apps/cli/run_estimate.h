// SPDX-License-Identifier: Apache-2.0
// Planner facts of a run: its model's cost and its data's size. The caller provides the machine.
#pragma once

#include <cstdint>
#include <optional>

#include "apps/cli/application.h"
#include "config/flags/command_line.h"
#include "plan/run_estimate.h"
#include "train/learn/registries.h"

namespace welkin::apps {

struct EstimateOptions {
  int64_t world = 1;
  std::optional<double> flops_per_second{};  // of a device; nothing: no times
  int64_t node_devices = 0;                  // ranks of a node; 0: all of them
  // Facts of the data, for several estimates of one run: filled in by the first. Null: they are read.
  std::optional<train::DatasetFacts>* data = nullptr;
};

// Opens the data where the keys alone do not give its size. ConfigError for a model without a cost.
plan::RunEstimate estimate_of(const Application& application, const config::CommandLine& line, const EstimateOptions& options);

// ConfigError if the model cannot be split over so many processes as configured: too many stages, or an axis that its plan does
// not split. Checks nothing where only the data give its shape.
void check_layout_of(const train::Registries& registries, const config::RunConfig& config, int64_t world);

}  // namespace welkin::apps
