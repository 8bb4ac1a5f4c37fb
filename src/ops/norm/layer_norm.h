// SPDX-License-Identifier: Apache-2.0
// Layer normalisation over the last dim, y = (x - mean) / sqrt(variance + epsilon) * weight + bias, as in aten. On a CPU its
// result need not be kept: a matmul that takes it (linear() of ops/gemm/mixed_matmul.h) has it recomputed in the
// backward pass. That costs one pass over memory and saves a sixth of a transformer's kept values.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace torch::autograd {
struct Node;
}

namespace welkin::ops {

// x (..., width), weight and bias (width). Differentiable; only once with matmuls that recompute it.
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon);

// The result of a norm, recomputed in the backward pass of operators that did not keep it.
class NormResult : public torch::CustomClassHolder {
 public:
  explicit NormResult(std::shared_ptr<torch::autograd::Node> norm) : norm_(std::move(norm)) {}

  // The result in this type; consecutive requests for the same type in a backward pass share one. Call it only before the pass
  // reaches the norm itself.
  at::Tensor recompute(at::ScalarType type) const;

 private:
  std::shared_ptr<torch::autograd::Node> norm_;
};

// Handle with which the caller recomputes `y` once instead of keeping it. Null unless `y` is the unmodified result of a norm
// that supports this.
c10::intrusive_ptr<NormResult> norm_result(const at::Tensor& y);

}  // namespace welkin::ops
