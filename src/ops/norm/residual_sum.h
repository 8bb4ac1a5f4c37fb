// SPDX-License-Identifier: Apache-2.0
// The sum of a residual stream and a branch. Under autocast on a CPU the stream is float32 and the branch bfloat16: aten widens
// the branch into a tensor of its own first, here both are read once. Everywhere else it is aten's sum.
#pragma once

#include <ATen/core/Tensor.h>

namespace welkin::ops {

// x + branch, in the type of aten's sum. Differentiable.
at::Tensor residual_sum(const at::Tensor& x, const at::Tensor& branch);

}  // namespace welkin::ops
