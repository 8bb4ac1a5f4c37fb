// SPDX-License-Identifier: Apache-2.0
// Noise on the input of training (Sanchez-Gonzalez et al. 2020, arXiv:2002.09405): a model that has seen errors of its input
// learns to take them out, so that rollouts stay stable for longer.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace welkin::train {

// The key of a sample's noise: the run's seed, the optimizer step and the sample's place in the epoch, independent of the ranks
// that share the work.
struct NoiseKey {
  uint64_t seed = 0;
  at::Tensor step;    // () int64 on the device
  at::Tensor sample;  // (B) int64 there
};

// (B, shape...) float32 on the device of the key: independent standard normals. The host waits for nothing.
at::Tensor standard_normals(const NoiseKey& key, const std::vector<int64_t>& shape);

}  // namespace welkin::train
