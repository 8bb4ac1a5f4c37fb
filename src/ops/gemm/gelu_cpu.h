// SPDX-License-Identifier: Apache-2.0
// gelu(x + bias) on CPU tensors of float32 and bfloat16: the kernels of ops/cpu/elementwise/gelu_kernel.h, parallel over rows.
#pragma once

#include "ops/device/device_tables.h"

namespace welkin::ops {

const DeviceGelu& cpu_gelu();

// The same for bfloat16 x whose matmuls are made in float32 (upcasts_matmul()): the operands and the result of those, `out` and
// grad_out, stay float32, without a pass that casts them. `out` has values of bfloat16; grad_out is rounded to it when it is
// read, and overwritten.
at::Tensor widened_bias_gelu(const at::Tensor& x, const at::Tensor& bias);
GeluGradients widened_bias_gelu_backward(const at::Tensor& grad_out, const at::Tensor& x, const at::Tensor& bias);

}  // namespace welkin::ops
