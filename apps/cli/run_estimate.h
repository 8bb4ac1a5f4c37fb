// SPDX-License-Identifier: Apache-2.0
// Planner facts of a run: its model's cost and its data's size. The caller provides the machine.
#pragma once

#include <cstdint>
#include <optional>

#include "apps/cli/application.h"
#include "config/flags/command_line.h"
#include "plan/run_estimate.h"

namespace welkin::apps {

// Opens the data where the keys alone do not give its size. ConfigError for a model without a cost.
// `node_devices`: ranks of a node; 0: all of them.
plan::RunEstimate estimate_of(const Application& application, const config::CommandLine& line, int64_t world,
                              std::optional<double> flops_per_second = {}, int64_t node_devices = 0);

// ConfigError if the model cannot be split over so many processes as configured: too many stages, or an axis that its plan does
// not split. Checks nothing where only the data give its shape.
void check_layout_of(const train::Registries& registries, const config::RunConfig& config, int64_t world);

}  // namespace welkin::apps
