// SPDX-License-Identifier: Apache-2.0
// The memory of the models that come with Welkin. Models of plug-ins have none: nobody knows what they keep.
#pragma once

#include <optional>

#include "config/schema/run_config.h"
#include "model/base/memory_cost.h"
#include "model/registry.h"

namespace welkin::model {

// Nothing for a name that is not built in. Throws ConfigError where the model could not be built.
std::optional<MemoryCost> builtin_memory_cost(const config::RunConfig& config, const ModelShape& shape);

}  // namespace welkin::model
