// SPDX-License-Identifier: Apache-2.0
// Our own form of both convolutions on tensors, forward and gradients: adapts the operators of
// ops/convolution/convolution.h to the CPU kernels.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "ops/convolution/convolution.h"

namespace welkin::ops {

enum class ConvolutionKind { Strided, Transposed };  // from the fine grid to the coarse one, or back

struct ConvolutionCall {
  ConvolutionParams rule;
  LeakyRelu leaky_relu;
  ConvolutionKind kind = ConvolutionKind::Strided;
  at::Tensor into{};  // of the result's shape, in memory like that of convolution_cpu_memory(); undefined: a new tensor
};

// All x of one type: float32, bfloat16 or (if matmuls are widened, ops/gemm/mixed_matmul.h) float16; weight and bias float32.
// False for shapes that do not fit: aten then reports the error.
bool convolution_cpu_supports(at::TensorList x, const at::Tensor& weight, ConvolutionKind kind, const at::Tensor& bias = {});

struct ConvolutionOperands {
  std::vector<at::Tensor> x;
  at::Tensor weight;
};

// An empty result with these extents, of which `into` may be a part.
at::Tensor convolution_cpu_memory(const ConvolutionCall& call, const at::Tensor& x, const at::Tensor& weight,
                                  const BoxShape& cells);

at::Tensor convolution_cpu_forward(const ConvolutionCall& call, const ConvolutionOperands& operands, const at::Tensor& bias);

struct ConvolutionGradients {
  std::vector<at::Tensor> x;
  at::Tensor weight, bias;
};
struct GradientMask {
  bool x = true, weight = true, bias = true;
};

// Takes the gradient after the activation; `out` is the result, needed only with an activation. `into` has no meaning here.
ConvolutionGradients convolution_cpu_backward(const ConvolutionCall& call, const ConvolutionOperands& operands,
                                              const at::Tensor& out, const at::Tensor& grad, const GradientMask& wanted);

}  // namespace welkin::ops
