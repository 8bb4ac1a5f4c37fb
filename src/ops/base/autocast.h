// SPDX-License-Identifier: Apache-2.0
// Autocast as a scope, and the rule by which own operators cast: user models in aten and our operators share one scope.
// Autocast's state is per thread; the autograd engine carries it into the backward pass, own threads do not get it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>

#include <optional>

namespace welkin::ops {

// While alive, autocast to `dtype` is on for the device type (off without a dtype); then everything is as before. The cache of
// cast weights is dropped when the outermost guard ends, so a guard spans one forward pass.
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
  Pointwise,  // whatever dtype comes in
};

// In which dtype an operator of this class takes x now. Float64 and integers stay as they are.
at::ScalarType operand_type(const at::Tensor& x, OperatorClass operator_class);
// x in that dtype; x itself when there is nothing to do. Differentiable.
at::Tensor cast_operand(const at::Tensor& x, OperatorClass operator_class);

}  // namespace welkin::ops
