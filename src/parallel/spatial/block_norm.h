// SPDX-License-Identifier: Apache-2.0
// Instance normalisation of fields that are cut into blocks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "parallel/comm/group.h"

namespace welkin::parallel {

// Normalises each channel of each sample by mean and deviation of the whole, of which each member has a block: one sum over the
// group forward, one backward. x_BCHW: the own block in float32 or float64, which may have no points; weight, bias (C);
// num_points of the whole. Gradients of weight and bias are partial sums over the group. Every member calls it.
// Differentiable once.
at::Tensor block_norm(const Group& group, int64_t num_points, const at::Tensor& x_BCHW, const at::Tensor& weight,
                      const at::Tensor& bias, double epsilon);

}  // namespace welkin::parallel
