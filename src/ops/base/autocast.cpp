// SPDX-License-Identifier: Apache-2.0
// A scope over autocast's per-thread state.
#include "ops/base/autocast.h"

#include <ATen/autocast_mode.h>

namespace welkin::ops {

AutocastGuard::AutocastGuard(c10::DeviceType device, std::optional<at::ScalarType> dtype)
    : device_(device),
      was_enabled_(at::autocast::is_autocast_enabled(device)),
      old_dtype_(at::autocast::get_autocast_dtype(device)) {
  at::autocast::increment_nesting();
  at::autocast::set_autocast_enabled(device_, dtype.has_value());
  if (dtype) at::autocast::set_autocast_dtype(device_, *dtype);
}

AutocastGuard::~AutocastGuard() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, old_dtype_);
}

at::ScalarType operand_type(const at::Tensor& x, OperatorClass operator_class) {
  const c10::DeviceType device = x.device().type();
  const bool castable = x.is_floating_point() && x.scalar_type() != at::kDouble;
  if (!castable || operator_class == OperatorClass::Pointwise || !at::autocast::is_autocast_enabled(device)) {
    return x.scalar_type();
  }
  return operator_class == OperatorClass::Matmul ? at::autocast::get_autocast_dtype(device) : at::kFloat;
}

at::Tensor cast_operand(const at::Tensor& x, OperatorClass operator_class) {
  const at::ScalarType wanted = operand_type(x, operator_class);
  return wanted == x.scalar_type() ? x : at::autocast::cached_cast(wanted, x, x.device().type());
}

}  // namespace welkin::ops
