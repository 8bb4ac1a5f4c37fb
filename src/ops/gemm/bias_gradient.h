// SPDX-License-Identifier: Apache-2.0
// A linear layer on a GPU whose bias gradient is one pass of our own over the result's gradient, summed in float32;
// aten's sum in 16 bits takes five times as long there. The kernel is in libwelkin_cuda.so.
#pragma once

#include <ATen/core/Tensor.h>

namespace welkin::ops {

// True if there is a kernel that sums the rows of these 16-bit numbers in float32.
bool has_column_sums(const at::Tensor& values);

// True if there is a kernel for this operand of a matmul, and this bias is trained.
bool sums_bias_gradient(const at::Tensor& operand, const at::Tensor& bias);

// at::linear(x, weight, bias), x (..., in), weight (out, in), bias (out) float32. Differentiable once.
at::Tensor linear_with_own_bias_gradient(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace welkin::ops
