// SPDX-License-Identifier: Apache-2.0
// The second half of a transformer's MLP: linear(gelu(x), weight, bias), exact GELU. Keeps x for the backward pass and makes
// gelu(x) again there: of the MLP's activations, the widest of the model, one in two stays. The bias of the matmul that made x
// joins in: one pass adds it and makes gelu, one more the gradients of both and gelu again. The kernels of a CPU are in
// gelu_cpu.h, those of a GPU in libwelkin_cuda.so.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>

namespace welkin::ops {

// x (..., in), weight (out, in), bias (out) or undefined.
at::Tensor gelu_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
at::Tensor gelu_linear_reference(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// gelu_linear(x + x_bias, weight, bias), x_bias (in). Differentiable once.
at::Tensor bias_gelu_linear(const at::Tensor& x, const at::Tensor& x_bias, const at::Tensor& weight, const at::Tensor& bias);
// Whether bias_gelu_linear adds this bias on its way. Elsewhere a bias is better left to the matmul that makes x.
bool fuses_bias_gelu(const at::Tensor& x_bias);

}  // namespace welkin::ops
