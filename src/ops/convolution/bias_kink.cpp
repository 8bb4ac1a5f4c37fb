// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution/bias_kink.h"

#include <torch/csrc/autograd/custom_function.h>

#include "ops/base/differentiable_once.h"

namespace welkin::ops {
namespace {

constexpr auto kLast = at::MemoryFormat::ChannelsLast3d;

struct BiasKink : torch::autograd::Function<BiasKink> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& bias,
                            double slope) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    device_kink().forward(x, bias, slope);
    context->mark_dirty({x});
    context->save_for_backward({x});
    context->saved_data["slope"] = slope;
    return x;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    differentiable_once("bias and kink of a convolution");
    const at::Tensor out = context->get_saved_variables()[0];
    const KinkGradients gradients =
        device_kink().backward(grads[0].contiguous(kLast), out, context->saved_data["slope"].toDouble());
    return {gradients.of_x, gradients.of_bias, at::Tensor()};
  }
};

}  // namespace

// Filled in by the initialisers of a library, before main's context exists.
DeviceKink& device_kink() {
  static DeviceKink table;
  return table;
}

bool fuses_bias_kink(c10::DeviceType device, const at::Tensor& bias, double slope) {
  return device_kink().forward != nullptr && device == device_kink().device && bias.defined() &&
         bias.scalar_type() == at::kFloat && bias.is_contiguous() && slope >= 0 && slope != 1;
}

bool bias_kink_takes(const at::Tensor& x, const at::Tensor& bias, double slope) {
  return fuses_bias_kink(x.device().type(), bias, slope) && x.dim() == 5 && x.numel() > 0 && x.is_contiguous(kLast);
}

at::Tensor bias_kink(const at::Tensor& x, const at::Tensor& bias, double slope) { return BiasKink::apply(x, bias, slope); }

}  // namespace welkin::ops
