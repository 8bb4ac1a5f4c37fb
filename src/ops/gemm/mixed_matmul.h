// SPDX-License-Identifier: Apache-2.0
// Matmuls of float16 and bfloat16. Most processors have no instructions for one of them or for both, and aten's forms are
// then a hundred times slower than those of float32 (EPYC of the third generation: 1.4 and 176 GFLOP/s on two cores). There
// operands are widened, multiplied in float32 and the result is rounded: exact products of rounded operands, sums in float32 and
// one rounding, which is what a matmul of such a type is.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace welkin::ops {

// Whether matmuls of this type are made in float32 on this device.
bool upcasts_matmul(c10::Device device, at::ScalarType type);

// While alive, types that this processor could multiply are widened too, and the other way round: both ways run on any machine.
class UpcastMatmulGuard {
 public:
  explicit UpcastMatmulGuard(bool widens);
  ~UpcastMatmulGuard();
  UpcastMatmulGuard(const UpcastMatmulGuard&) = delete;
  UpcastMatmulGuard& operator=(const UpcastMatmulGuard&) = delete;
};

// As at::linear, under autocast in its type. x (..., in), weight (out, in), bias (out) or undefined. Differentiable; once only
// where tiles make the matmuls (ops/gemm/amx_matmul.h) or x is the result of layer_norm().
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

// linear() of one x by several weights (out, in) and their biases. On a GPU it is one matmul: under autocast x is cast once and
// the gradients by x are summed within the matmul, where each weight alone makes a cast of x and one of its gradient.
std::vector<at::Tensor> linears(const at::Tensor& x, at::TensorList weights, at::TensorList biases);
std::vector<at::Tensor> fused_linears(const at::Tensor& x, at::TensorList weights, at::TensorList biases);  // as one, anywhere

// Inside of own gradients, with autocast left aside. `low` is the type whose rounding a matmul has; where matmuls of it are made
// in float32, operands are float32 tensors with values of it, and nothing in that type needs memory.
at::Tensor matmul_operand(const at::Tensor& x, at::ScalarType low);
inline at::Tensor matmul_operand(const at::Tensor& x) { return matmul_operand(x, x.scalar_type()); }
// A weight as own gradients take it and keep it for the backward pass: under autocast cast, or itself where matmul_operand()
// rounds.
at::Tensor matmul_weight(const at::Tensor& weight);
// Matmuls of such operands, rounded to the type that is asked for. x (..., in), weight (out, in), bias (out) or undefined.
at::Tensor matmul(const at::Tensor& a, const at::Tensor& b, at::ScalarType type);
at::Tensor matmul_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::ScalarType type);

// The gradients of a linear layer, rounded to `low`. grad (rows, out) is an operand already, since both take it; weight (out,
// in). Of the input, in the type `to`, and of the weight, in its type; x (..., in).
at::Tensor linear_grad_input(const at::Tensor& grad, const at::Tensor& weight, at::IntArrayRef sizes, at::ScalarType low,
                             at::ScalarType to);
at::Tensor linear_grad_weight(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight, at::ScalarType low);
// grad.sum(0), rounded, in the type `to`.
at::Tensor linear_grad_bias(const at::Tensor& grad, at::ScalarType low, at::ScalarType to);

}  // namespace welkin::ops
