// SPDX-License-Identifier: Apache-2.0
// What the model's own collectives move in a step, from those of one sample.
#pragma once

#include <vector>

#include "config/schema/run_config.h"
#include "plan/run_estimate.h"

namespace welkin::plan {

inline constexpr double kWideBytes = 4;  // of a weight, a gradient, a state, a value of a norm or a sum

// Of a value in the type of matmuls.
inline double narrow_bytes(const config::RunConfig& config) {
  return config.precision.amp_mode == config::AmpMode::None ? kWideBytes : 2;
}

// Of a rank that has this share of the model.
std::vector<CollectiveTraffic> collectives_of(const config::RunConfig& config, const RunFacts& facts, const StageFacts& stage);

}  // namespace welkin::plan
