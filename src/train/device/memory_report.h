// SPDX-License-Identifier: Apache-2.0
// The out-of-memory error of a CPU (`memory_limit_gib`) or a GPU: what holds the memory, and how to use less. train, bench,
// evaluate and predict give the same text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/schema/run_config.h"
#include "parallel/shard/param_table.h"
#include "train/device/memory_limit.h"
#include "train/optim/optimizer.h"

namespace welkin::train {

// Bytes whose use is known.
struct KnownMemory {
  int64_t weights = 0, gradients = 0, optimizer = 0;
  int64_t buffers = 0;  // of batches that lie where the run computes
  // The use of all remaining memory: "weights" while a model is made, "optimizer" while its state is, then "activations".
  std::string rest = "buffers";
  bool trains = false;  // a backward pass and an optimizer follow
  // What the model offers besides: blocks whose activations can be recomputed, a plan for tensor parallelism.
  bool has_blocks = false, has_plan = false;
};

// The known memory of a training run. The table has no rows before the model is made; `optimizer` is null before it has its
// state; `has_buffers` says that the buffers of batches are made.
KnownMemory known_memory(const parallel::ParamTable& table, Optimizer* optimizer, int64_t buffers, bool has_buffers);

// Called inside a catch block. Returns the current error as a MemoryError if it says that there is no more memory: by our
// limit, by the allocator of this thread's GPU, whose limit is `limit_bytes` (0: none is set), or by the system. Nothing for
// any other error.
std::optional<MemoryError> memory_error_if_any(int64_t limit_bytes);

// The same; rethrows any other error.
MemoryError memory_error_in_flight(const config::RunConfig& config);

// The same error with the list of where the memory is. An error that has the list already stays as it is.
MemoryError explained(const MemoryError& error, const KnownMemory& known, const config::RunConfig& config);

}  // namespace welkin::train
