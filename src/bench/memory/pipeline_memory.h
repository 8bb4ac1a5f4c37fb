// SPDX-License-Identifier: Apache-2.0
// Memory of a pipeline rank during a training step: activations of all micro-batches in flight, and gradients. It depends on no
// schedule: it reads the allocator whenever a backward pass begins, when forward passes have added most.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "config/schema/run_config.h"
#include "parallel/comm/world.h"
#include "parallel/shard/param_table.h"
#include "train/step/setup.h"

namespace welkin::bench {

// Bytes of the whole parameter's gradient and of this rank's piece, which may be a view of it.
int64_t gradient_bytes_of(const parallel::ParamRow& row);

// Bytes of one rank.
struct StepHeld {
  // The peak without parameters' gradients: values that forward passes keep for backward passes, values that zero_bubble keeps
  // for the weight passes, copies of micro-batches in flight, and messages that are received or not yet used.
  int64_t activations = 0;
  std::vector<int64_t> gradients;  // by row of the table, at the moment of their largest total
};

// Makes whole training steps, updates included, from micro-batches like `input` and `target` (B, ...); the last may use a part
// of it. Every rank calls it, with memory counting on (CPU). `setup` has a pipeline; `dataset_size`: samples of an epoch,
// at least those of a step.
StepHeld count_pipeline_steps(train::TrainSetup& setup, const config::RunConfig& config, const at::Tensor& input,
                              const at::Tensor& target, const parallel::World& world, int64_t dataset_size);

}  // namespace welkin::bench
