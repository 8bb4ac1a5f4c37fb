// SPDX-License-Identifier: Apache-2.0
// Casts for matmuls that are made in float32, by our kernels for bfloat16 on a CPU (ops/cpu/elementwise/convert_kernel.h) and
// by aten elsewhere. Each is one pass over memory. Differentiable like aten's: when a graph is built, aten's are used.
#pragma once

#include <ATen/core/Tensor.h>

namespace welkin::ops {

// x in float32.
at::Tensor widened(const at::Tensor& x);

// Float32 x in `type`; with `bias` (of the last dim's size), x + bias, rounded once.
at::Tensor narrowed(const at::Tensor& x, at::ScalarType type, const at::Tensor& bias = {});

// Float32 x with each value rounded to `type`, still float32.
at::Tensor rounded(const at::Tensor& x, at::ScalarType type);
// The same, in place if no graph is built; x must have no other user.
at::Tensor rounded_in_place(const at::Tensor& x, at::ScalarType type);
// rounded() of at::cat(parts), in one pass.
at::Tensor rounded_rows(at::TensorList parts, at::ScalarType type);

}  // namespace welkin::ops
