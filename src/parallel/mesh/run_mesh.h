// SPDX-License-Identifier: Apache-2.0
// The mesh that a configuration asks for.
#pragma once

#include <cstdint>

#include "config/schema/run_config.h"
#include "parallel/mesh/mesh.h"

namespace welkin::parallel {

// tp and cp as configured, data parallelism over the rest. ConfigError where they do not make up the world.
Mesh mesh_of(const config::ParallelConfig& config, int64_t world_size);

}  // namespace welkin::parallel
