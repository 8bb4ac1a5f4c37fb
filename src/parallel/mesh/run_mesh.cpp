// SPDX-License-Identifier: Apache-2.0
#include "parallel/mesh/run_mesh.h"

#include "core/error.h"
#include "core/text.h"

namespace welkin::parallel {

Mesh mesh_of(const config::ParallelConfig& config, int64_t world_size) {
  MeshSizes sizes;
  sizes.tp = config.tensor_parallel;
  sizes.cp = config.context_parallel;
  const int64_t model_size = sizes.tp * sizes.cp;
  if (world_size % model_size != 0) {
    throw ConfigError(
        "parallel",
        cat("tp times cp does not divide the number of ranks: tp=", sizes.tp, ", cp=", sizes.cp, ", ranks=", world_size),
        cat("Start a multiple of ", model_size, " processes"));
  }
  sizes.dp_replicate = world_size / model_size;
  return Mesh(config.parallel_order, sizes);
}

}  // namespace welkin::parallel
