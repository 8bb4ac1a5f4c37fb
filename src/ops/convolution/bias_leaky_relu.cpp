// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution/bias_leaky_relu.h"

#include <torch/csrc/autograd/custom_function.h>

#include "ops/base/once_differentiable.h"
#include "ops/device/device_ops.h"

namespace welkin::ops {
namespace {

constexpr auto kLast = at::MemoryFormat::ChannelsLast3d;

struct BiasLeakyRelu : torch::autograd::Function<BiasLeakyRelu> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& bias,
                            double slope) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    device_ops().leaky_relu.forward(x, bias, slope);
    context->mark_dirty({x});
    context->save_for_backward({slope == 1 ? at::Tensor() : x});
    context->saved_data["slope"] = slope;
    return x;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    once_differentiable("bias and leaky ReLU of a convolution");
    const at::Tensor out = context->get_saved_variables()[0], grad = grads[0].contiguous(kLast);
    const double slope = context->saved_data["slope"].toDouble();
    if (slope == 1) return {grad, device_ops().leaky_relu.column_sums(grad), at::Tensor()};
    const LeakyReluGradients gradients = device_ops().leaky_relu.backward(grad, out, slope);
    return {gradients.grad_x, gradients.grad_bias, at::Tensor()};
  }
};

}  // namespace

bool fuses_bias_leaky_relu(c10::DeviceType device, const at::Tensor& bias, double slope) {
  return device_ops().leaky_relu.forward != nullptr && device == device_ops().leaky_relu.device && bias.defined() &&
         bias.scalar_type() == at::kFloat && bias.is_contiguous() && slope >= 0;
}

bool bias_leaky_relu_supports(const at::Tensor& x, const at::Tensor& bias, double slope) {
  return fuses_bias_leaky_relu(x.device().type(), bias, slope) && x.dim() == 5 && x.numel() > 0 && x.is_contiguous(kLast);
}

at::Tensor bias_leaky_relu(const at::Tensor& x, const at::Tensor& bias, double slope) {
  return BiasLeakyRelu::apply(x, bias, slope);
}

}  // namespace welkin::ops
