// SPDX-License-Identifier: Apache-2.0
// A residual sum and its layer norm: s = x + branch, y = (s - mean) / sqrt(variance + epsilon) * weight + bias over the last dim.
// On a GPU one kernel forward, which writes y in the type of the matmul that takes it, and two backward, instead of five and
// six operators of aten. The kernels are in libwelkin_cuda.so. Everywhere else it is aten's two operators.
#pragma once

#include <ATen/core/Tensor.h>

namespace welkin::ops {

struct ResidualNorm {
  at::Tensor sum, normed;
};

// x and branch (..., width), weight and bias (width). Differentiable; only once on a GPU.
ResidualNorm residual_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight, const at::Tensor& bias,
                           double epsilon);
ResidualNorm residual_norm_reference(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                                     const at::Tensor& bias, double epsilon);

// The layer norm of x alone, for matmuls. On a GPU the result has their type, too, so that none of them casts it, or its
// gradient back. Everywhere else it is layer_norm().
at::Tensor norm_for_matmul(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon);

}  // namespace welkin::ops
