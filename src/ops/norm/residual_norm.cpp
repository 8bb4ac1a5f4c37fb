// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/residual_norm.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "ops/base/once_differentiable.h"
#include "ops/device/device_ops.h"
#include "ops/norm/layer_norm.h"
#include "ops/norm/residual_sum.h"

namespace welkin::ops {
namespace {

struct FusedResidualNorm : torch::autograd::Function<FusedResidualNorm> {
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                                                const at::Tensor& branch, const at::Tensor& weight, const at::Tensor& bias,
                                                double epsilon) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    NormState state;
    const at::Tensor normed = device_ops().norm.forward(x, branch, weight, bias, epsilon, branch.scalar_type(), state);
    context->save_for_backward({state.sum, state.mean, state.rstd, weight});
    context->saved_data["low"] = static_cast<int64_t>(normed.scalar_type());
    context->set_materialize_grads(false);
    return {state.sum, normed};
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    once_differentiable("layer norm of a GPU");
    const auto saved = context->get_saved_variables();
    const auto low = static_cast<at::ScalarType>(context->saved_data["low"].toInt());
    const NormState state{.sum = saved[0], .mean = saved[1], .rstd = saved[2]};
    const at::Tensor of_sum = grads[0].defined() ? grads[0].contiguous() : at::Tensor();
    const at::Tensor grad_normed =
        grads[1].defined() ? grads[1].contiguous() : at::zeros(state.sum.sizes(), state.sum.options().dtype(low));
    const NormGradients gradients = device_ops().norm.backward(grad_normed, of_sum, state, saved[3], /*has_branch=*/true);
    return {gradients.grad_x, gradients.grad_branch, gradients.grad_weight, gradients.grad_bias, {}};
  }
};

struct FusedNorm : torch::autograd::Function<FusedNorm> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, double epsilon, int64_t type) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    NormState state;
    at::Tensor normed = device_ops().norm.forward(x, {}, weight, bias, epsilon, static_cast<at::ScalarType>(type), state);
    context->save_for_backward({x, state.mean, state.rstd, weight});
    return normed;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    once_differentiable("layer norm of a GPU");
    const auto saved = context->get_saved_variables();
    const NormState state{.sum = saved[0], .mean = saved[1], .rstd = saved[2]};
    const NormGradients gradients = device_ops().norm.backward(grads[0].contiguous(), {}, state, saved[3], /*has_branch=*/false);
    return {gradients.grad_x, gradients.grad_weight, gradients.grad_bias, {}, {}};
  }
};

// The type of the next matmul's operand on this device.
at::ScalarType matmul_type(c10::DeviceType device) {
  return at::autocast::is_autocast_enabled(device) ? at::autocast::get_autocast_dtype(device) : at::kFloat;
}

bool device_norm_takes(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const DeviceNorm& table = device_ops().norm;
  const auto is_single = [](const at::Tensor& y) { return y.defined() && y.scalar_type() == at::kFloat; };
  return table.forward != nullptr && x.device().type() == table.device && x.numel() > 0 && is_single(x) && is_single(weight) &&
         is_single(bias) && weight.numel() == x.size(-1) && weight.is_contiguous() && bias.is_contiguous();
}

// The next matmul's operand has the branch's type, since the branch comes from a matmul itself.
bool device_norm_adds(const at::Tensor& x, const at::Tensor& branch) {
  return x.sizes() == branch.sizes() && branch.scalar_type() == matmul_type(x.device().type());
}

}  // namespace

ResidualNorm residual_norm_reference(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                                     const at::Tensor& bias, double epsilon) {
  ResidualNorm out;
  out.sum = residual_sum(x, branch);
  out.normed = layer_norm(out.sum, weight, bias, epsilon);
  return out;
}

ResidualNorm residual_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight, const at::Tensor& bias,
                           double epsilon) {
  if (!device_norm_takes(x, weight, bias) || !device_norm_adds(x, branch)) {
    return residual_norm_reference(x, branch, weight, bias, epsilon);
  }
  const auto out = FusedResidualNorm::apply(x.contiguous(), branch.contiguous(), weight, bias, epsilon);
  return {.sum = out[0], .normed = out[1]};
}

at::Tensor norm_for_matmul(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon) {
  if (!device_norm_takes(x, weight, bias)) return layer_norm(x, weight, bias, epsilon);
  return FusedNorm::apply(x.contiguous(), weight, bias, epsilon, static_cast<int64_t>(matmul_type(x.device().type())));
}

}  // namespace welkin::ops
