// SPDX-License-Identifier: Apache-2.0
// Strided 3-D convolution and its transpose with bias, as in the U-Net: any kernel, stride and padding, no dilation, one
// group. Optionally the channels are in several tensors, and a leaky ReLU follows. Our own form is used where
// ops/convolution/convolution_cpu.h supports the operands, aten's elsewhere. Results of our own form are channels-last, or
// contiguous for few channels; it is differentiable once. A GPU's tensor cores read channels that are last by fours and eights
// of 16 bits. cuDNN pads other numbers only if it changes the memory format itself, so an odd number of channels is padded with
// zeros here.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <optional>
#include <string>

#include "ops/convolution/convolution_grid.h"

namespace welkin::ops {

// Name of the implementation for this device and dtype, for the log: welkin where the channels allow it, else aten.
std::string convolution_form(c10::Device device, at::ScalarType dtype);

// Of a transposed one, padding is the number of points that are taken away from the ends of the result. At its end a negative
// number adds points, which have the bias alone.
struct ConvolutionParams {
  BoxShape stride{1, 1, 1};
  BoxShape padding{0, 0, 0};
  std::optional<BoxShape> padding_end{};  // at the end of each axis, if not as at its beginning

  BoxShape at_end() const { return padding_end.value_or(padding); }
};

// A leaky ReLU: x where x > 0, slope * x elsewhere. 1 is none, 0 a ReLU.
struct LeakyRelu {
  double slope = 1.0;
};

// In place: x must have no other user.
at::Tensor leaky_relu_in_place(at::Tensor x, const LeakyRelu& leaky_relu);

// Concatenates the channels of boxes with the same points.
at::Tensor join_channels(at::TensorList x);

// x: one or two (B, ..., D, H, W) whose channels together are `in`; weight (out, in, kD, kH, kW), bias (out). The result is
// written to `into`, if that is given: a part of convolution3d_memory() with its shape. It shares the storage, but autograd
// does not see that: nothing else may write there.
at::Tensor convolution3d(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const ConvolutionParams& rule,
                         const LeakyRelu& leaky_relu = {}, const at::Tensor& into = {});
at::Tensor convolution3d_reference(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                   const ConvolutionParams& rule, const LeakyRelu& leaky_relu = {});

// x as above, weight (in, out, kD, kH, kW), bias (out).
at::Tensor transposed_convolution3d(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                    const ConvolutionParams& rule, const LeakyRelu& leaky_relu = {}, const at::Tensor& into = {});
at::Tensor transposed_convolution3d_reference(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                              const ConvolutionParams& rule, const LeakyRelu& leaky_relu = {});

// Empty memory (B, out, cells) for the results of several calls with operands like these; undefined if only a call's own memory
// can have its result.
at::Tensor convolution3d_memory(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const BoxShape& cells,
                                const LeakyRelu& leaky_relu = {});
at::Tensor transposed_convolution3d_memory(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                           const BoxShape& cells, const LeakyRelu& leaky_relu = {});

// The same with channels in and out padded with zeros to multiples of eight; returns a view without the padding.
at::Tensor convolution3d_in_eights(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                   const ConvolutionParams& rule, const LeakyRelu& leaky_relu = {});
at::Tensor transposed_convolution3d_in_eights(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                              const ConvolutionParams& rule, const LeakyRelu& leaky_relu = {});

}  // namespace welkin::ops
