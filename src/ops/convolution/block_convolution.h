// SPDX-License-Identifier: Apache-2.0
// A convolution of 4 x 4 x 4 taps, stride 2 and padding 1, or its transpose, as one of 2 x 2 x 2 taps and stride 1 on blocks of
// 2 x 2 x 2 points. The products are the same, but the matrices for a GPU's tensor cores are eight times as wide, which helps
// few channels (sub-pixel convolution, Shi et al. 2016, arXiv:1609.05158, and space to depth are its two halves).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "ops/convolution/convolution_form.h"

namespace welkin::ops {

// Blocks of a box (B, C, n0, n1, n2) with zeros around it, points even: (B, 8 C, n0/2+1, n1/2+1, n2/2+1), channels (q, c).
at::Tensor to_blocks(const at::Tensor& x);
// The inverse. With a bias (C) float32 it adds the bias and applies a leaky ReLU.
at::Tensor from_blocks(const at::Tensor& blocks, const at::Tensor& bias = {}, double slope = 1.0);

// True if kernel, stride and padding are those, and the extents even. `x` as in convolution3d.
bool fits_blocks(at::TensorList x, const at::Tensor& weight, const ConvolutionCall& call);

// Like convolution3d and transposed_convolution3d, channels-last; x and the result of one type, weight and bias (out) float32
// or of that type. Keeps the parts of x for the backward pass, not their concatenation. Differentiable once.
at::Tensor block_convolution(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const ConvolutionCall& call);

using ConvolutionForm = std::function<at::Tensor(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias)>;
// Returns the seconds of `work`, forward and backward, on its device.
using ConvolutionTimer = std::function<double(const std::function<void()>& work)>;

// True if blocks are faster than `plain` for these shapes and types: measured once for each, with separate operands and
// enough boxes to fill a device. False if memory is too small for that.
bool blocks_are_faster(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const ConvolutionCall& call,
                       const ConvolutionForm& plain, const ConvolutionTimer& seconds_of);

}  // namespace welkin::ops
