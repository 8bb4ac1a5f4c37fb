// SPDX-License-Identifier: Apache-2.0
// The weight of each predicted channel in the loss: by its variable and pressure level, which its name states ("t500", "t2m"),
// and by the key channel_weights, which overrides them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/schema/run_config.h"

namespace welkin::train {

// "t500" -> t and 500, "temperature_850" -> temperature and 850. Nothing for "t2m", "u10" (10 m wind) and other names.
struct LeveledName {
  std::string variable;
  double level = 0;  // hPa
};
std::optional<LeveledName> leveled_name(const std::string& channel);

// Size C; empty where all weigh 1. Only their ratios matter, as losses divide by the sum of weights.
//   makani     "auto" of makani/utils/losses/base_loss.py: t2m and 2d 1, other fields near the ground 0.1, a channel on a level
//              0.001 * hPa, others 0.01
//   graphcast  Lam et al. 2023 (doi:10.1126/science.adi2336) and graphcast/losses.py: a level of a variable its share of the
//              sum of that variable's levels, t2m 1, wind at 10 m, msl and tp 0.1, others 1
// ConfigError for an entry of channel_weights that fits no channel, is no number or is negative, or where nothing would weigh.
std::vector<double> channel_weights(const config::LossConfig& config, const std::vector<std::string>& channels);

}  // namespace welkin::train
