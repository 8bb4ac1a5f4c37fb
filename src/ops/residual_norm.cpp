// SPDX-License-Identifier: Apache-2.0
#include "ops/residual_norm.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "ops/layer_norm.h"

namespace welkin::ops {
namespace {

struct FusedResidualNorm : torch::autograd::Function<FusedResidualNorm> {
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                                                const at::Tensor& branch, const at::Tensor& weight, const at::Tensor& bias,
                                                double epsilon) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    NormState state;
    const at::Tensor normed = device_norm().forward(x, branch, weight, bias, epsilon, state);
    context->save_for_backward({state.sum, state.mean, state.rstd, weight});
    context->saved_data["low"] = static_cast<int64_t>(normed.scalar_type());
    context->set_materialize_grads(false);
    return {state.sum, normed};
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const auto low = static_cast<at::ScalarType>(context->saved_data["low"].toInt());
    const NormState state{.sum = saved[0], .mean = saved[1], .rstd = saved[2]};
    const at::Tensor of_sum = grads[0].defined() ? grads[0].contiguous() : at::Tensor();
    const at::Tensor of_normed =
        grads[1].defined() ? grads[1].contiguous() : at::zeros(state.sum.sizes(), state.sum.options().dtype(low));
    const NormGradients gradients = device_norm().backward(of_normed, of_sum, state, saved[3]);
    return {gradients.of_x, gradients.of_branch, gradients.of_weight, gradients.of_bias, {}};
  }
};

// The type in which the next product takes its operand is that of the branch, which comes from a product itself.
bool device_norm_takes(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight, const at::Tensor& bias) {
  const DeviceNorm& table = device_norm();
  const c10::DeviceType device = x.device().type();
  if (table.forward == nullptr || device != table.device || x.numel() == 0 || x.sizes() != branch.sizes()) return false;
  const bool is_mixed = at::autocast::is_autocast_enabled(device);
  const at::ScalarType low = is_mixed ? at::autocast::get_autocast_dtype(device) : at::kFloat;
  const auto is_single = [](const at::Tensor& y) { return y.defined() && y.scalar_type() == at::kFloat; };
  return is_single(x) && branch.scalar_type() == low && is_single(weight) && is_single(bias) && weight.numel() == x.size(-1) &&
         weight.is_contiguous() && bias.is_contiguous();
}

}  // namespace

// Filled in by the initialisers of a library, before main's context exists.
DeviceNorm& device_norm() {
  static DeviceNorm table;
  return table;
}

ResidualNorm residual_norm_reference(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                                     const at::Tensor& bias, double epsilon) {
  ResidualNorm out;
  out.sum = x.add(branch);
  out.normed = layer_norm(out.sum, weight, bias, epsilon);
  return out;
}

ResidualNorm residual_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight, const at::Tensor& bias,
                           double epsilon) {
  if (!device_norm_takes(x, branch, weight, bias)) return residual_norm_reference(x, branch, weight, bias, epsilon);
  const auto out = FusedResidualNorm::apply(x.contiguous(), branch.contiguous(), weight, bias, epsilon);
  return {.sum = out[0], .normed = out[1]};
}

}  // namespace welkin::ops
