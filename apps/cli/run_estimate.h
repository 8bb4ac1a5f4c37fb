// SPDX-License-Identifier: Apache-2.0
// What the planner says of a run of ours: its model's cost, its data's size, the machine left to the caller.
#pragma once

#include <cstdint>
#include <optional>

#include "apps/cli/application.h"
#include "config/flags/command_line.h"
#include "plan/run_estimate.h"

namespace welkin::apps {

// Opens the data where the keys alone do not say its size. ConfigError for a model without a cost.
plan::RunEstimate estimate_of(const Application& application, const config::CommandLine& line, int64_t world,
                              std::optional<double> flops_per_second = {});

// ConfigError where the model cannot be split over so many processes as the configuration says: too many stages, an axis that its
// plan does not split. Where only the data say its shape, nothing is checked.
void check_layout_of(const train::Registries& registries, const config::RunConfig& config, int64_t world);

}  // namespace welkin::apps
