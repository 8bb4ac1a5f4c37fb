// SPDX-License-Identifier: Apache-2.0
// A convolution of 4 x 4 x 4 taps, stride 2 and padding 1, or its transpose, as one of 2 x 2 x 2 taps and stride 1 on blocks of
// 2 x 2 x 2 points: the same products, but for a GPU's tensor cores matrices eight times as wide, which few channels need
// (sub-pixel convolution, Shi et al. 2016, arXiv:1609.05158, and space to depth are the two halves of it).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "ops/convolution/convolution_form.h"

namespace welkin::ops {

// Blocks of a box (B, C, n0, n1, n2) with zeros around it, points even: (B, 8 C, n0/2+1, n1/2+1, n2/2+1), channels (q, c).
at::Tensor to_blocks(const at::Tensor& x);
// The box of blocks; with a bias (C) float32 it is added, and a leaky ReLU follows.
at::Tensor from_blocks(const at::Tensor& blocks, const at::Tensor& bias = {}, double slope = 1.0);

// Whether the kernel, stride and padding are those, and the extents even. `x` as convolution3d takes it.
bool fits_blocks(at::TensorList x, const at::Tensor& weight, const ConvolutionCall& call);

// As convolution3d and transposed_convolution3d, channels-last; x and the result of one type, weight and bias (out) float32 or of
// that type. Keeps the parts of x for the backward pass, not what they are joined to. Differentiable once.
at::Tensor block_convolution(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const ConvolutionCall& call);

using ConvolutionForm = std::function<at::Tensor(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias)>;
// Seconds of `work`, forward and backward, on the device where it runs.
using ConvolutionTimer = std::function<double(const std::function<void()>& work)>;

// Whether blocks are faster than `plain` for operands of these shapes and types: measured once for each, with operands of its own
// and as many boxes as fill a device. Not where memory lacks for that.
bool blocks_are_faster(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const ConvolutionCall& call,
                       const ConvolutionForm& plain, const ConvolutionTimer& seconds_of);

}  // namespace welkin::ops
