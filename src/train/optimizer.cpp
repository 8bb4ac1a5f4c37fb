// SPDX-License-Identifier: Apache-2.0
#include "train/optimizer.h"

#include <ATen/ops/as_strided.h>
#include <ATen/ops/zeros_like.h>

#include "core/error.h"
#include "core/text.h"

namespace welkin::train {

StepLists with_gradients(const std::vector<OptimizerParameter>& parameters, bool decays) {
  StepLists lists;
  for (size_t row = 0; row < parameters.size(); ++row) {
    const OptimizerParameter& parameter = parameters[row];
    const at::Tensor& gradient = parameter.value.grad();
    if (parameter.decays != decays || !gradient.defined()) continue;
    WELKIN_CHECK(gradient.strides() == parameter.value.strides(),
                 cat("gradient and parameter differ in strides: ", parameter.name));
    lists.values.push_back(in_memory_order(parameter.value));
    lists.gradients.push_back(in_memory_order(gradient));
    lists.rows.push_back(row);
  }
  return lists;
}

at::Tensor in_memory_order(const at::Tensor& tensor) {
  if (tensor.is_contiguous() || !tensor.is_non_overlapping_and_dense()) return tensor;
  return at::as_strided(tensor, {tensor.numel()}, {1});
}

at::Tensor state_like(const at::Tensor& value) {
  at::Tensor state = at::zeros_like(value.detach(), value.options().requires_grad(false), at::MemoryFormat::Preserve);
  WELKIN_CHECK(state.strides() == value.strides(), "an optimizer state does not have its parameter's strides");
  return state;
}

}  // namespace welkin::train
