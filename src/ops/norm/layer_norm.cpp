// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/layer_norm.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <tuple>
#include <utility>

namespace welkin::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Shared by the users of a norm's result in one backward pass.
struct SharedResult : torch::CustomClassHolder {
  int64_t takers = 0;  // users in the forward pass
  int64_t left = 0;    // users that have not requested it yet
  at::Tensor values;
};

struct RebuiltNorm : torch::autograd::Function<RebuiltNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                            double epsilon) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto [y, mean, rstd] = at::native_layer_norm(x, weight.sizes(), weight, bias, epsilon);
    context->save_for_backward({x, mean, rstd, weight, bias});
    context->saved_data["epsilon"] = epsilon;
    context->saved_data["shared"] = c10::IValue::make_capsule(c10::make_intrusive<SharedResult>());
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    shared_of(*context).values.reset();  // perhaps not all have requested it
    shared_of(*context).left = 0;
    const auto saved = context->get_saved_variables();
    const std::array<bool, 3> wanted{context->needs_input_grad(0), context->needs_input_grad(1), context->needs_input_grad(2)};
    auto [grad_x, grad_weight, grad_bias] =
        at::native_layer_norm_backward(grads[0], saved[0], saved[3].sizes(), saved[1], saved[2], saved[3], saved[4], wanted);
    return {grad_x, grad_weight, grad_bias, {}};
  }

  static SharedResult& shared_of(const AutogradContext& context) {
    return static_cast<SharedResult&>(*context.saved_data.at("shared").toCapsule());
  }
};

using NormNode = torch::autograd::CppNode<RebuiltNorm>;

bool is_rebuilt(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const bool is_one_type = x.scalar_type() == weight.scalar_type() && x.scalar_type() == bias.scalar_type();
  return x.is_cpu() && is_one_type && at::GradMode::is_enabled() && (x.requires_grad() || weight.requires_grad());
}

}  // namespace

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon) {
  return is_rebuilt(x, weight, bias) ? RebuiltNorm::apply(x, weight, bias, epsilon)
                                     : at::layer_norm(x, weight.sizes(), weight, bias, epsilon);
}

at::Tensor NormResult::recompute(at::ScalarType type) const {
  const AutogradContext& context = static_cast<const NormNode&>(*norm_).ctx_;
  SharedResult& shared = RebuiltNorm::shared_of(context);
  if (shared.left == 0) shared.left = shared.takers;
  if (!shared.values.defined() || shared.values.scalar_type() != type) {
    const at::NoGradGuard no_grad;
    const auto saved = context.get_saved_variables();
    const double epsilon = context.saved_data.at("epsilon").toDouble();
    const auto norm = at::native_layer_norm(saved[0], saved[3].sizes(), saved[3], saved[4], epsilon);
    shared.values = std::get<0>(norm).to(type);
  }
  return --shared.left == 0 ? std::exchange(shared.values, at::Tensor()) : shared.values;
}

c10::intrusive_ptr<NormResult> norm_result(const at::Tensor& y) {
  if (!at::GradMode::is_enabled()) return {};
  const auto node = std::dynamic_pointer_cast<NormNode>(y.grad_fn());
  if (node == nullptr || y._version() != 0) return {};  // after an in-place change recomputing would return the old values
  ++RebuiltNorm::shared_of(node->ctx_).takers;
  return c10::make_intrusive<NormResult>(node);
}

}  // namespace welkin::ops
