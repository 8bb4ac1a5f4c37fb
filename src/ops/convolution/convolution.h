// SPDX-License-Identifier: Apache-2.0
// Strided 3-D convolution and its transpose with bias, as the U-Net uses them: any kernel, stride and padding, no dilation, one
// group; optionally of channels that lie in several tensors, and with a leaky ReLU at its end. Our own form where
// ops/convolution/convolution_cpu.h takes the operands, aten's elsewhere. Results of our own form are channels-last, those of few
// channels contiguous; it is differentiable once. A GPU's tensor cores read channels that lie last by fours and eights of 16
// bits, and cuDNN fills up others only where it turns boxes over itself: there an odd number of them is filled up with zeros
// here.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <string>

#include "ops/convolution/convolution_grid.h"

namespace welkin::ops {

// Name of the implementation for this device and dtype, for the log: welkin where the channels allow it, else aten.
std::string convolution_form(c10::Device device, at::ScalarType dtype);

struct ConvolutionParams {
  BoxShape stride{1, 1, 1};
  BoxShape padding{0, 0, 0};
};

// A leaky ReLU: x where x > 0, slope * x elsewhere. 1 is none, 0 a ReLU.
struct LeakyRelu {
  double slope = 1.0;
};

// In place: x is nobody else's.
at::Tensor leaky_relu_in_place(at::Tensor x, const LeakyRelu& leaky_relu);

// Boxes of the same points as one of all their channels.
at::Tensor join_channels(at::TensorList x);

// x: one or two (B, ..., D, H, W) whose channels together are `in`; weight (out, in, kD, kH, kW), bias (out).
at::Tensor convolution3d(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const ConvolutionParams& rule,
                         const LeakyRelu& leaky_relu = {});
at::Tensor convolution3d_reference(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                   const ConvolutionParams& rule, const LeakyRelu& leaky_relu = {});

// x as above, weight (in, out, kD, kH, kW), bias (out).
at::Tensor transposed_convolution3d(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                    const ConvolutionParams& rule, const LeakyRelu& leaky_relu = {});
at::Tensor transposed_convolution3d_reference(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                              const ConvolutionParams& rule, const LeakyRelu& leaky_relu = {});

// The same as matmuls of whole eights of channels, in and out, with zeros in those that are missing: a view without them.
at::Tensor convolution3d_in_eights(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                   const ConvolutionParams& rule, const LeakyRelu& leaky_relu = {});
at::Tensor transposed_convolution3d_in_eights(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                              const ConvolutionParams& rule, const LeakyRelu& leaky_relu = {});

}  // namespace welkin::ops
