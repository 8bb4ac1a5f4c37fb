// SPDX-License-Identifier: Apache-2.0
// Arguments of a forward pass besides its input.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace welkin::model {

// `step` and `sample` key dropout and drop-path (ops/random/philox_dropout.h): a mask is a pure function of (seed, layer, sample,
// step, global element), so it is the same for every batch split, rank and thread. Only a model in training mode whose rates are
// not zero reads them.
struct ForwardContext {
  uint64_t seed = 0;
  at::Tensor step;    // () int64 on the input's device; may be undefined in evaluation
  at::Tensor sample;  // (B) int64 on the input's device; may be undefined in evaluation
};

}  // namespace welkin::model
