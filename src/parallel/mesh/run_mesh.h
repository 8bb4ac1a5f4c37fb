// SPDX-License-Identifier: Apache-2.0
// Makes the mesh of a configuration.
#pragma once

#include <cstdint>

#include "config/schema/run_config.h"
#include "parallel/mesh/mesh.h"

namespace welkin::parallel {

// tp, cp and spatial as configured, data parallelism over the rest, of which `shard_group` share a training state. ConfigError
// if their product is not the world size. `ranks_per_node`: neighbouring ranks on one node; 0: all of them.
Mesh mesh_of(const config::ParallelConfig& config, int64_t world_size, int64_t ranks_per_node = 0);

}  // namespace welkin::parallel
