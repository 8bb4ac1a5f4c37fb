// SPDX-License-Identifier: Apache-2.0
// Adam and AdamW whose averages take fewer bits (key optimizer_state).
#pragma once

#include <vector>

#include "ops/arithmetic/update_kernel.h"
#include "train/optim/optimizer.h"

namespace welkin::train {

// Weights of at least so many elements have lean averages. Smaller ones, biases, norms and position embeddings keep float32, as
// in Dettmers et al., arXiv:2110.02861.
inline constexpr int64_t kLeastLeanElements = 4096;

// `wide` is adam or adamw: it updates the parameters that keep float32, and decides how weights decay. bf16: bfloat16 averages
// with stochastic rounding, by a stream of the run's seed and the parameter's name; a part takes the same numbers as in the
// whole. 8bit: blocks of 256 (ops/arithmetic/state_codes.h) in the order of memory, within a rank's tensor-parallel part.
OptimizerPtr lean_adam(const config::RunConfig& config, std::vector<OptimizerParameter> parameters,
                       OptimizerPtr (*wide)(const config::RunConfig&, std::vector<OptimizerParameter>));

struct AdamNumbers {
  double rate = 0, steps = 1, decay = 0;
  bool decoupled = false;
  float gradient_scale = 1;
};
ops::AdamRule adam_rule(const AdamNumbers& numbers, const config::OptimizerConfig& config);

}  // namespace welkin::train
