// SPDX-License-Identifier: Apache-2.0
// Layer normalisation over the last dim, y = (x - mean) / sqrt(variance + epsilon) * weight + bias, as aten makes it, whose
// result need not be kept on a CPU: a matmul that takes it (linear() of ops/gemm/mixed_matmul.h) asks for it again in the
// backward pass. That is a pass over memory for a sixth of what a transformer keeps.
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

// x (..., width), weight and bias (width). Differentiable; once only behind matmuls that ask again.
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon);

// The result of a norm, to be made again in the backward pass of those that took it without keeping it.
class NormResult : public torch::CustomClassHolder {
 public:
  explicit NormResult(std::shared_ptr<torch::autograd::Node> norm) : norm_(std::move(norm)) {}

  // In this type; made once for all of a backward pass that ask one after the other for the same. Only while the pass has not
  // come to the norm itself.
  at::Tensor recompute(at::ScalarType type) const;

 private:
  std::shared_ptr<torch::autograd::Node> norm_;
};

// Handle with which the caller recomputes `y` once instead of keeping it. Null unless `y` is the unmodified result of a norm
// that supports this.
c10::intrusive_ptr<NormResult> norm_result(const at::Tensor& y);

}  // namespace welkin::ops
