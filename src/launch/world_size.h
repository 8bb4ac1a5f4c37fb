// SPDX-License-Identifier: Apache-2.0
// How many processes the launcher of this one says it has started.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace welkin::launch {

struct AnnouncedWorld {
  int64_t size = 1;
  std::string variable;  // that said so; empty when none did
};

// Looks at WORLD_SIZE (torchrun, the tutorials), SLURM_NTASKS inside an srun step, OMPI_COMM_WORLD_SIZE and PMI_SIZE, in this
// order. `read` is getenv, or a test's. Throws ConfigError when the variable holds no number of processes.
AnnouncedWorld announced_world(const std::function<const char*(const char*)>& read);

}  // namespace welkin::launch
