// SPDX-License-Identifier: Apache-2.0
// Scores as a table for people and as JSON for programs.
#pragma once

#include <string>

#include "train/evaluate/scores.h"

namespace welkin::train {

// One row per channel and forecast, and the loss; ends with a newline.
std::string scores_table(const Scores& scores);

// {"samples", "loss", "wavenumber": "zonal" or "radial", "rmse": {forecast: x}, "channels": {name: {"unit", "target_spectrum":
// [...], forecast: {"rmse", "mean_rmse", "rmse_physical", "mae_physical", "bias_physical", "small_scales", "spectrum": [...],
// "acc"}}}}; numbers that are not finite are null.
std::string scores_json(const Scores& scores);

// Tables of a rollout: scores of lead 1, 2, ...
std::string rollout_table(const std::vector<Scores>& leads);
// {"starts": ..., "leads": [{"lead": 1, and what scores_json() has}, ...]}.
std::string rollout_json(const std::vector<Scores>& leads);

}  // namespace welkin::train
