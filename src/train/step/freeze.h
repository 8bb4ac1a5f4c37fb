// SPDX-License-Identifier: Apache-2.0
// Parameters that keep their values (key `freeze`): they get no gradient, so the optimizer has no state for them, nothing is
// exchanged, and no weight decay acts.
#pragma once

#include <string>
#include <vector>

#include "parallel/shard/param_table.h"

namespace welkin::train {

// Freezes every parameter whose name a pattern (core/glob.h) matches; returns the line for the log, empty without patterns.
// ConfigError for a pattern without a match, and if nothing is left to train. Called before gradients get any memory.
std::string freeze_parameters(const parallel::ParamTable& table, const std::vector<std::string>& patterns);

}  // namespace welkin::train
