// SPDX-License-Identifier: Apache-2.0
// What to say where a process has no more memory, on a CPU by `memory_limit_gib` or on a GPU: where the memory is, and what makes
// it smaller. The same words from train, bench, evaluate and predict.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include "config/run_config.h"
#include "parallel/param_table.h"
#include "train/memory_limit.h"
#include "train/optimizer.h"

namespace welkin::train {

// Bytes of which it is known what they are for.
struct KnownMemory {
  int64_t weights = 0, gradients = 0, optimizer = 0;
  int64_t buffers = 0;  // of batches, as far as they lie where the run computes
};

// `optimizer` may be null.
KnownMemory known_memory(const parallel::ParamTable& table, Optimizer* optimizer, int64_t buffers);

// Inside a catch block. The error that is being handled, where it says that there is no more memory; throws it on where it says
// anything else.
MemoryError memory_error_in_flight(c10::Device device, const config::RunConfig& config);

// The same with where the memory is; an error that says it already stays as it is.
MemoryError explained(const MemoryError& error, const KnownMemory& known, const config::RunConfig& config);

}  // namespace welkin::train
