// SPDX-License-Identifier: Apache-2.0
// Strided 3-D convolution and its transpose with bias, as the U-Net uses them: any kernel, stride and padding, no dilation, one
// group. Our own form where ops/convolution_cpu.h takes the operands, aten's elsewhere. Results of our own form are
// channels-last.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <string>

#include "ops/convolution_grid.h"

namespace welkin::ops {

// Who runs them for this device and dtype, for people: welkin where the channels allow it, or aten.
std::string convolution_form(c10::Device device, at::ScalarType dtype);

struct BoxStride {
  BoxShape stride{1, 1, 1};
  BoxShape padding{0, 0, 0};
};

// x (B, in, D, H, W), weight (out, in, kD, kH, kW), bias (out).
at::Tensor convolution3d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const BoxStride& rule);
at::Tensor convolution3d_reference(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const BoxStride& rule);

// x (B, in, D, H, W), weight (in, out, kD, kH, kW), bias (out).
at::Tensor transposed_convolution3d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const BoxStride& rule);
at::Tensor transposed_convolution3d_reference(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                              const BoxStride& rule);

}  // namespace welkin::ops
