// SPDX-License-Identifier: Apache-2.0
// The products stay aten's: they are what takes the time.
#include "ops/gelu_linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "ops/autocast.h"

namespace welkin::ops {
namespace {

struct GeluLinear : torch::autograd::Function<GeluLinear> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    context->save_for_backward({x, weight});
    context->saved_data["bias"] = bias.has_value();
    return at::linear(at::gelu(x), weight, bias);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor grad = grads[0].reshape({-1, weight.size(0)});
    torch::autograd::variable_list gradients(3);
    if (context->needs_input_grad(1)) gradients[1] = at::mm(grad.t(), at::gelu(x).reshape({-1, weight.size(1)}));
    if (context->needs_input_grad(0)) gradients[0] = at::gelu_backward(at::mm(grad, weight).view_as(x), x);
    if (gradients_bias(*context)) gradients[2] = grad.sum(0);
    return gradients;
  }

  // The bias is an input only where there is one.
  static bool gradients_bias(const torch::autograd::AutogradContext& context) {
    return context.saved_data.at("bias").toBool() && context.needs_input_grad(2);
  }
};

}  // namespace

at::Tensor gelu_linear_reference(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::linear(at::gelu(x), weight, bias);
}

at::Tensor gelu_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const auto product = [](const at::Tensor& operand) { return cast_operand(operand, OperatorClass::Product); };
  return GeluLinear::apply(product(x), product(weight), bias.defined() ? std::optional(product(bias)) : std::nullopt);
}

}  // namespace welkin::ops
