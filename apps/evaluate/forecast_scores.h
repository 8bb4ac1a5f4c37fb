// SPDX-License-Identifier: Apache-2.0
// `welkin evaluate RUN --forecast FILE`: scores of a forecast that was written before.
#pragma once

#include <vector>

#include "apps/cli/application.h"
#include "apps/cli/trained_run.h"
#include "config/flags/command_line.h"

namespace welkin::apps {

// The flags of a forecast's scores, --forecast among them.
const std::vector<config::ExtraFlag>& forecast_score_flags();

// Does not need the model: the run's configuration names channels, grid and data.
void evaluate_forecast(Application& application, const TrainedRun& run);

}  // namespace welkin::apps
