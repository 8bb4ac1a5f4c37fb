// SPDX-License-Identifier: Apache-2.0
// Adam and AdamW whose averages take fewer bits (key optimizer_state).
#pragma once

#include <vector>

#include "ops/arithmetic/update_kernel.h"
#include "train/optim/optimizer.h"

namespace welkin::train {

// Weights of at least so many elements have lean averages; smaller ones, biases, norms and position embeddings keep float32, as
// Dettmers et al., arXiv:2110.02861, have it.
inline constexpr int64_t kLeastLeanElements = 4096;

// `wide` is adam or adamw: of the parameters that keep float32, and which decay it is. bf16: bfloat16 averages, rounded at random
// by a stream of the run's seed and the parameter's name, of which a part takes what the whole would. 8bit: blocks of 256
// (ops/arithmetic/state_codes.h), in the order of memory, counted within what tensor parallelism leaves to a rank.
OptimizerPtr lean_adam(const config::RunConfig& config, std::vector<OptimizerParameter> parameters,
                       OptimizerPtr (*wide)(const config::RunConfig&, std::vector<OptimizerParameter>));

struct AdamNumbers {
  double rate = 0, steps = 1, decay = 0;
  bool decoupled = false;
  float gradient_scale = 1;
};
ops::AdamRule adam_rule(const AdamNumbers& numbers, const config::OptimizerConfig& config);

}  // namespace welkin::train
