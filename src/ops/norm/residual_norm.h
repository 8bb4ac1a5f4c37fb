// SPDX-License-Identifier: Apache-2.0
// A residual sum and its layer norm: s = x + branch, y = (s - mean) / sqrt(variance + epsilon) * weight + bias over the last dim.
// On a GPU one kernel forward, which writes y in the type of the product that takes it, and two backward, instead of the five and
// six of aten's operators: the kernels are in libwelkin_cuda.so. Everywhere else it is aten's two operators.
#pragma once

#include <ATen/core/Tensor.h>

namespace welkin::ops {

struct ResidualNorm {
  at::Tensor sum, normed;
};

// x and branch (..., width), weight and bias (width). Differentiable; once only on a GPU.
ResidualNorm residual_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight, const at::Tensor& bias,
                           double epsilon);
ResidualNorm residual_norm_reference(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                                     const at::Tensor& bias, double epsilon);

// The layer norm of x alone, for products: on a GPU it, too, comes in their type, so that none of them casts it, nor its gradient
// back. Everywhere else it is layer_norm().
at::Tensor norm_for_matmul(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon);

// What the backward pass needs of the forward one.
struct NormState {
  at::Tensor sum;         // float32
  at::Tensor mean, rstd;  // (rows) float32
};
struct NormGradients {
  at::Tensor grad_x, grad_branch, grad_weight, grad_bias;
};

// All without gaps: x float32, branch and `normed` of one type, float32, float16 or bfloat16. `branch` may be undefined: the sum
// is x itself then, and there is no gradient of a branch. `of_sum` may be undefined.
struct DeviceNorm {
  c10::DeviceType device = c10::kCUDA;  // whose tensors the functions take
  at::Tensor (*forward)(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight, const at::Tensor& bias,
                        double epsilon, at::ScalarType type, NormState& state) = nullptr;
  NormGradients (*backward)(const at::Tensor& grad_normed, const at::Tensor& of_sum, const NormState& state,
                            const at::Tensor& weight, bool has_branch) = nullptr;
};

// libwelkin_cuda.so registers its functions while it is loaded; null before.
DeviceNorm& device_norm();

}  // namespace welkin::ops
