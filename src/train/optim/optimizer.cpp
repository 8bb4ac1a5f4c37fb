// SPDX-License-Identifier: Apache-2.0
#include "train/optim/optimizer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "ops/update/device_update.h"
#include "train/optim/update_spans.h"

namespace welkin::train {

namespace {

// True if elements lie in the same order; strides of dims of size one do not matter. cuDNN gives the gradient of a
// channels-last 1 x 1 kernel other such strides than the kernel has, and autograd takes it as it is.
bool share_memory_order(const at::Tensor& a, const at::Tensor& b) {
  for (int64_t dim = 0; dim < a.dim(); ++dim) {
    if (a.size(dim) != 1 && a.stride(dim) != b.stride(dim)) return false;
  }
  return true;
}

}  // namespace

StepLists with_gradients(const std::vector<OptimizerParameter>& parameters, bool decays) {
  StepLists lists;
  for (size_t row = 0; row < parameters.size(); ++row) {
    const OptimizerParameter& parameter = parameters[row];
    const at::Tensor& gradient = parameter.value.grad();
    if (parameter.decays != decays || !gradient.defined()) continue;
    WELKIN_CHECK(share_memory_order(gradient, parameter.value),
                 cat("gradient and parameter differ in strides: ", parameter.name));
    lists.values.push_back(in_memory_order(parameter.value));
    lists.gradients.push_back(in_memory_order(gradient));
    lists.rows.push_back(row);
  }
  return lists;
}

void apply_gradient_scale(const StepInputs& inputs, const std::vector<at::Tensor>& gradients) {
  if (inputs.gradient_scale.defined()) at::_foreach_mul_(gradients, inputs.gradient_scale);
}

at::Tensor is_skipped(const StepInputs& inputs) { return inputs.found_inf.ne(0); }

at::Tensor safe_gradient(const StepInputs& inputs, const at::Tensor& gradient) {
  const at::Tensor scaled = inputs.gradient_scale.defined() ? gradient * inputs.gradient_scale : gradient;
  return at::where(is_skipped(inputs), at::zeros_like(scaled), scaled);
}

void assign_unless_skipped(const StepInputs& inputs, const at::Tensor& target, const at::Tensor& value) {
  target.copy_(at::where(is_skipped(inputs), target, value));
}

at::Tensor in_memory_order(const at::Tensor& tensor) {
  if (tensor.is_contiguous() || !tensor.is_non_overlapping_and_dense()) return tensor;
  return at::as_strided(tensor, {tensor.numel()}, {1});
}

namespace {

// Nothing if `takes` refuses one of the tensors.
template <typename Takes>
std::optional<std::vector<ops::UpdateSpan>> runs_where(const Takes& takes, const StepLists& lists,
                                                       const std::vector<at::Tensor>& first,
                                                       const std::vector<at::Tensor>& second) {
  if (!std::all_of(lists.values.begin(), lists.values.end(), takes)) return std::nullopt;
  if (!std::all_of(lists.gradients.begin(), lists.gradients.end(), takes)) return std::nullopt;
  std::vector<ops::UpdateSpan> runs;
  for (size_t i = 0; i < lists.rows.size(); ++i) {
    const size_t row = lists.rows[i];
    runs.push_back({lists.values[i].numel(), lists.values[i].mutable_data_ptr<float>(),
                    lists.gradients[i].const_data_ptr<float>(), first[row].mutable_data_ptr<float>(),
                    second.empty() ? nullptr : second[row].mutable_data_ptr<float>()});
  }
  return runs;
}

}  // namespace

std::optional<std::vector<ops::UpdateSpan>> update_spans(const StepLists& lists, const std::vector<at::Tensor>& first,
                                                         const std::vector<at::Tensor>& second) {
  const auto fits = [](const at::Tensor& x) {
    return x.is_cpu() && x.scalar_type() == at::kFloat && x.is_non_overlapping_and_dense();
  };
  return runs_where(fits, lists, first, second);
}

std::optional<std::vector<ops::UpdateSpan>> device_update_spans(const StepLists& lists, const std::vector<at::Tensor>& first,
                                                                const std::vector<at::Tensor>& second) {
  return runs_where(ops::device_update_supports, lists, first, second);
}

ops::UpdateScalars update_scalars(const StepInputs& inputs, const at::Tensor& steps) {
  return {.rate = inputs.rate.to(at::kFloat),
          .gradient_scale = inputs.gradient_scale.defined() ? inputs.gradient_scale : at::ones_like(inputs.found_inf),
          .found_inf = inputs.found_inf,
          .steps = steps};
}

float gradient_scale(const StepInputs& inputs) {
  return inputs.gradient_scale.defined() ? inputs.gradient_scale.item<float>() : 1.0F;
}

at::Tensor state_like(const at::Tensor& value) {
  at::Tensor state = at::zeros_like(value.detach(), value.options().requires_grad(false), at::MemoryFormat::Preserve);
  WELKIN_CHECK(state.strides() == value.strides(), "an optimizer state does not have its parameter's strides");
  return state;
}

}  // namespace welkin::train
