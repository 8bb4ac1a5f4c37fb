// SPDX-License-Identifier: Apache-2.0
// The second half of a transformer's MLP: linear(gelu(x), weight, bias), exact GELU. Keeps x for the backward pass and makes
// gelu(x) again there: of the MLP's activations, the widest of the model, one in two stays.
#pragma once

#include <ATen/core/Tensor.h>

namespace welkin::ops {

// x (..., in), weight (out, in), bias (out) or undefined.
at::Tensor gelu_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
at::Tensor gelu_linear_reference(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace welkin::ops
