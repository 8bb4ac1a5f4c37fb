// SPDX-License-Identifier: Apache-2.0
// Parameters that keep their values (key `freeze`): they get no gradient, so that the optimizer has no state for them, nothing is
// exchanged, and no weight decay acts.
#pragma once

#include <string>
#include <vector>

#include "parallel/shard/param_table.h"

namespace welkin::train {

// Every parameter whose name a pattern (core/glob.h) matches. Returns the line for the log; empty without patterns. ConfigError
// for a pattern that matches none, and where nothing is left to train. Before anything is made for the gradients.
std::string freeze_parameters(const parallel::ParamTable& table, const std::vector<std::string>& patterns);

}  // namespace welkin::train
