// SPDX-License-Identifier: Apache-2.0
// The second half of a transformer's MLP: linear(gelu(x), weight, bias), exact GELU. It keeps x for the backward pass and
// recomputes gelu(x) there, which halves the kept activations of the MLP, the widest of the model. The bias of the matmul that
// made x can join in: one pass adds it and applies GELU, another computes both gradients and GELU again. CPU kernels are in
// gelu_cpu.h, GPU kernels in libwelkin_cuda.so.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>

namespace welkin::ops {

// x (..., in), weight (out, in), bias (out) or undefined.
at::Tensor gelu_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
at::Tensor gelu_linear_reference(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// gelu_linear(x + x_bias, weight, bias), x_bias (in). Differentiable once.
at::Tensor bias_gelu_linear(const at::Tensor& x, const at::Tensor& x_bias, const at::Tensor& weight, const at::Tensor& bias);
// True if bias_gelu_linear fuses this bias. Otherwise the matmul that makes x should add it.
bool fuses_bias_gelu(const at::Tensor& x_bias);

}  // namespace welkin::ops
