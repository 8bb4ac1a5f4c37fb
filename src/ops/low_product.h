// SPDX-License-Identifier: Apache-2.0
// Matrix products of float16 and bfloat16. Many processors have no instructions for one of them or for both, and aten's forms are
// then a hundred times slower than those of float32 (EPYC of the third generation: 1.4 and 176 GFLOP/s on two cores). There
// products are made in float32 and the result is rounded: exact products of rounded operands, sums in float32 and one rounding,
// which is what a product of such a type is.
#pragma once

#include <ATen/core/Tensor.h>

namespace welkin::ops {

enum class LowForm {
  Direct,   // as aten makes them
  Mixed,    // MKL's product of 16-bit operands with float32 sums, which widens them while it packs them; in the wheel on x86
  Widened,  // aten's of widened copies
};

// How products of this type are made on this device. Direct for wider types.
LowForm low_form(c10::Device device, at::ScalarType type);
inline bool widens_products(c10::Device device, at::ScalarType type) { return low_form(device, type) != LowForm::Direct; }

// While alive, 16-bit products on a CPU are made this way (Widened for Mixed where MKL's are not to be had): all run on any
// machine.
class LowFormGuard {
 public:
  explicit LowFormGuard(LowForm form);
  ~LowFormGuard();
  LowFormGuard(const LowFormGuard&) = delete;
  LowFormGuard& operator=(const LowFormGuard&) = delete;
};

// As at::linear, differentiable, under autocast in its type. x (..., in), weight (out, in), bias (out) or undefined.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

// Inside of own gradients: products of operands of one type, in that type, as low_form() says. Autocast is left aside.
at::Tensor product(const at::Tensor& a, const at::Tensor& b);  // (m, k), (k, n)
at::Tensor product_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// The gradients of a linear layer; grad (rows, out), weight (out, in).
at::Tensor linear_by_input(const at::Tensor& grad, const at::Tensor& weight, at::IntArrayRef sizes);  // in the input's sizes
at::Tensor linear_by_weight(const at::Tensor& grad, const at::Tensor& x);                             // x (..., in)

}  // namespace welkin::ops
