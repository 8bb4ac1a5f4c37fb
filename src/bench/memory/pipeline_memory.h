// SPDX-License-Identifier: Apache-2.0
// What a rank of a pipeline holds while a training step goes on: activations of all micro-batches under way, and gradients. It
// knows no schedule: it looks at the allocator whenever a backward pass begins, before which passes forward have added most.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "config/schema/run_config.h"
#include "parallel/comm/world.h"
#include "parallel/shard/param_table.h"
#include "train/step/setup.h"

namespace welkin::bench {

// Of the whole parameter and of this rank's piece, which may be a view of it.
int64_t gradient_bytes_of(const parallel::ParamRow& row);

// Bytes of one rank.
struct StepHeld {
  // At most at once, and no gradients of parameters: what passes forward keep for their backward passes, what a zero_bubble's
  // keep for the gradients of weights, the copies of micro-batches under way, and messages that have come or not yet been used.
  int64_t activations = 0;
  std::vector<int64_t> gradients;  // by row of the table, at the moment when they are most together
};

// Makes whole training steps, updates included, of micro-batches like `input` and `target` (B, ...), of which the last may take a
// part. Every rank calls it, where the memory of the CPU is counted. `setup` has a pipeline; `dataset_size`: samples of an epoch,
// no fewer than a step's.
StepHeld count_pipeline_steps(train::TrainSetup& setup, const config::RunConfig& config, const at::Tensor& input,
                              const at::Tensor& target, const parallel::World& world, int64_t dataset_size);

}  // namespace welkin::bench
