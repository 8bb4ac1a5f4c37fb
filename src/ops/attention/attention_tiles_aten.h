// SPDX-License-Identifier: Apache-2.0
// Attention with dropout on its weights from aten's operators, for devices and types without a kernel of ours. Aten's fused
// kernels draw masks from torch's generators, so the weights are computed here for some queries at a time, and again in the
// backward pass: memory grows with the tokens, not with their square.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/random/philox_dropout.h"

namespace welkin::ops {

// attention_with_dropout() for operands that are already cast.
at::Tensor attention_in_tiles(const at::Tensor& q_BHND, const at::Tensor& k_BHMD, const at::Tensor& v_BHMD, double rate,
                              const MaskKey& key, const MaskWindow& window);

}  // namespace welkin::ops
