// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/bias_gradient.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>
#include <torch/csrc/autograd/custom_function.h>

#include "ops/base/once_differentiable.h"
#include "ops/device/device_ops.h"

namespace welkin::ops {
namespace {

// Returns a sum that includes the bias already; the backward pass adds the bias gradient. Not marked as an in-place write:
// at::linear's result is a view, and the gradient of an overwritten view is copied four times.
struct AddedBias : torch::autograd::Function<AddedBias> {
  static at::Tensor forward(torch::autograd::AutogradContext* /*context*/, const at::Tensor& sum, const at::Tensor& /*bias*/) {
    return sum;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* /*context*/,
                                                 const torch::autograd::variable_list& grads) {
    once_differentiable("bias of a linear layer");
    return {grads[0], device_ops().leaky_relu.column_sums(grads[0].contiguous())};
  }
};

}  // namespace

bool has_column_sums(const at::Tensor& values) {
  return device_ops().leaky_relu.column_sums != nullptr && values.device().type() == device_ops().leaky_relu.device &&
         at::isReducedFloatingType(values.scalar_type()) && values.numel() > 0;
}

bool sums_bias_gradient(const at::Tensor& operand, const at::Tensor& bias) {
  return has_column_sums(operand) && bias.defined() && bias.dim() == 1 && bias.scalar_type() == at::kFloat &&
         bias.requires_grad() && at::GradMode::is_enabled();
}

at::Tensor linear_with_own_bias_gradient(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return AddedBias::apply(at::linear(x, weight, bias.detach()), bias);
}

}  // namespace welkin::ops
