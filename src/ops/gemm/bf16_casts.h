// SPDX-License-Identifier: Apache-2.0
// Casts around matmuls that are made in float32, by our kernels for bfloat16 on a CPU (ops/cpu/elementwise/convert_kernel.h) and
// by aten elsewhere. Each is one pass over memory. Differentiable, as aten's are: where a graph is made, they are aten's.
#pragma once

#include <ATen/core/Tensor.h>

namespace welkin::ops {

// x in float32.
at::Tensor widened(const at::Tensor& x);

// Float32 x in `type`; with `bias` (of the last dim's size), x + bias, rounded once.
at::Tensor narrowed(const at::Tensor& x, at::ScalarType type, const at::Tensor& bias = {});

// Float32 x with each value rounded to `type`, still float32.
at::Tensor rounded(const at::Tensor& x, at::ScalarType type);
// The same in the memory of x, which nobody else reads, where no graph is made.
at::Tensor rounded_in_place(const at::Tensor& x, at::ScalarType type);

}  // namespace welkin::ops
