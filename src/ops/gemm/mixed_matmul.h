// SPDX-License-Identifier: Apache-2.0
// Matmuls of float16 and bfloat16. Most processors lack instructions for one of them or both, and aten's forms are
// then a hundred times slower than float32 (third-generation EPYC: 1.4 and 176 GFLOP/s on two cores). In this case
// operands are widened, multiplied in float32, and the result is rounded: exact products of rounded operands, sums in float32
// and one rounding, which defines a matmul of such a type.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace welkin::ops {

// True if matmuls of this type are made in float32 on this device.
bool upcasts_matmul(c10::Device device, at::ScalarType type);

// While alive, the choice is inverted, so that tests cover both ways on any machine: types with instructions are widened.
class UpcastMatmulGuard {
 public:
  explicit UpcastMatmulGuard(bool widens);
  ~UpcastMatmulGuard();
  UpcastMatmulGuard(const UpcastMatmulGuard&) = delete;
  UpcastMatmulGuard& operator=(const UpcastMatmulGuard&) = delete;
};

// Like at::linear, under autocast in its type. x (..., in), weight (out, in), bias (out) or undefined. Differentiable; only
// once if tiles make the matmuls (ops/gemm/amx_matmul.h) or x is the result of layer_norm().
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

// linear() of one x by several weights (out, in) and their biases. On a GPU it is one matmul: under autocast x is cast once and
// the gradients of x are summed within the matmul; separate matmuls would cast x, and its gradient, once per weight.
std::vector<at::Tensor> linears(const at::Tensor& x, at::TensorList weights, at::TensorList biases);
std::vector<at::Tensor> fused_linears(const at::Tensor& x, at::TensorList weights, at::TensorList biases);  // as one, anywhere

// For our own gradients, without autocast. `low` is the type to which a matmul rounds. If its matmuls are made
// in float32, operands are float32 tensors with rounded values, and nothing is stored in the low type.
at::Tensor matmul_operand(const at::Tensor& x, at::ScalarType low);
inline at::Tensor matmul_operand(const at::Tensor& x) { return matmul_operand(x, x.scalar_type()); }
// A weight as our gradients use it and keep it for the backward pass: cast under autocast, or unchanged if matmul_operand()
// rounds.
at::Tensor matmul_weight(const at::Tensor& weight);
// Matmuls of such operands, rounded to `type`. x (..., in), weight (out, in), bias (out) or undefined.
at::Tensor matmul(const at::Tensor& a, const at::Tensor& b, at::ScalarType type);
at::Tensor matmul_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::ScalarType type);

// The gradients of a linear layer, rounded to `low`: of the input, in the type `to`, and of the weight, in its type. grad
// (rows, out) is already an operand, since both use it; weight (out, in); x (..., in). `..._in_float` is not yet rounded: for
// matmuls that are made in float32.
at::Tensor linear_grad_input(const at::Tensor& grad, const at::Tensor& weight, at::IntArrayRef sizes, at::ScalarType low,
                             at::ScalarType to);
at::Tensor linear_grad_input_in_float(const at::Tensor& grad, const at::Tensor& weight, at::IntArrayRef sizes,
                                      at::ScalarType low);
at::Tensor linear_grad_weight(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight, at::ScalarType low);
// The same with an x that is already an operand.
at::Tensor linear_grad_weight_by_operand(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight,
                                         at::ScalarType low);
// grad.sum(0), rounded, in the type `to`.
at::Tensor linear_grad_bias(const at::Tensor& grad, at::ScalarType low, at::ScalarType to);

}  // namespace welkin::ops
