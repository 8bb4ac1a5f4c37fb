// SPDX-License-Identifier: Apache-2.0
// The end of a convolution on a GPU: bias and leaky ReLU in one pass each way, where aten takes one for each; the backward pass
// also sums the bias gradient. On a CPU they are part of our own convolutions. The kernels are in libwelkin_cuda.so.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>

namespace welkin::ops {

// True if there is a kernel for this device, bias and slope; and true if it also takes this x.
bool fuses_bias_leaky_relu(c10::DeviceType device, const at::Tensor& bias, double slope);
bool bias_leaky_relu_supports(const at::Tensor& x, const at::Tensor& bias, double slope);

// The leaky ReLU of x + bias, written over x. x (N, C, ...) must have no other user; bias (C) is float32. Differentiable once.
at::Tensor bias_leaky_relu(const at::Tensor& x, const at::Tensor& bias, double slope);

}  // namespace welkin::ops
