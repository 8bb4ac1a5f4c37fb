// SPDX-License-Identifier: Apache-2.0
// Autocast as a scope, and the rule by which our operators cast, so that user models in aten and our operators share one scope.
// Autocast's state is per thread. The autograd engine carries it into the backward pass; other threads do not get it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>

#include <optional>

namespace welkin::ops {

// While alive, autocast to `dtype` is on for the device type (off without a dtype). The destructor restores the state. The
// outermost guard clears the cache of cast weights at its end, so a guard spans one forward pass.
class AutocastGuard {
 public:
  AutocastGuard(c10::DeviceType device, std::optional<at::ScalarType> dtype);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  c10::DeviceType device_;
  bool was_enabled_;
  at::ScalarType old_dtype_;
};

enum class OperatorClass {
  Matmul,     // matmuls, convolutions, attention: the low precision of the scope
  Reduction,  // norms, softmax, losses: float32
  Pointwise,  // keeps the input's dtype
};

// The dtype to which an operator of this class casts x at present. Float64 and integers stay unchanged.
at::ScalarType operand_type(const at::Tensor& x, OperatorClass operator_class);
// x in that dtype; x itself if it has it already. Differentiable.
at::Tensor cast_operand(const at::Tensor& x, OperatorClass operator_class);

}  // namespace welkin::ops
