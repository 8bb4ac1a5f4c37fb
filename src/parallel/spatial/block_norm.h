// SPDX-License-Identifier: Apache-2.0
// Instance normalisation of fields that are cut into blocks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "parallel/comm/group.h"

namespace welkin::parallel {

// Each channel of each sample by mean and deviation of the whole, of which the group's members have a block each: one sum over
// the group forward, one back. x_BCHW: the own block in float32 or float64, which may have no points; weight, bias (C);
// num_points of the whole. The gradients by weight and bias are own parts of sums over the group. Every member calls it.
// Differentiable once.
at::Tensor block_norm(const Group& group, int64_t num_points, const at::Tensor& x_BCHW, const at::Tensor& weight,
                      const at::Tensor& bias, double epsilon);

}  // namespace welkin::parallel
