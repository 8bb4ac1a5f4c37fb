// SPDX-License-Identifier: Apache-2.0
// Which form runs, and the gradient of our own.
#include "ops/convolution.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/conv_transpose3d.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "core/error.h"
#include "core/text.h"
#include "ops/autocast.h"
#include "ops/convolution_form.h"
#include "ops/cpu/convolution_kernel.h"
#include "ops/low_product.h"

namespace welkin::ops {
namespace {

struct BoxProduct : torch::autograd::Function<BoxProduct> {
  // Without `second` x has one part.
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& first,
                            const std::optional<at::Tensor>& second, const at::Tensor& weight, const at::Tensor& bias,
                            const BoxCall& call) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    RECORD_FUNCTION("welkin::convolution", std::vector<c10::IValue>());
    const at::Tensor other = second.value_or(at::Tensor());
    at::Tensor out = convolution_cpu_forward(call, {parts_of(first, other), weight}, bias);
    context->save_for_backward({first, other, weight, call.kink.slope == 1.0 ? at::Tensor() : out});
    context->saved_data["way"] = call.way == BoxWay::Up;
    context->saved_data["slope"] = call.kink.slope;
    context->saved_data["stride"] = std::vector<int64_t>(call.rule.stride.begin(), call.rule.stride.end());
    context->saved_data["padding"] = std::vector<int64_t>(call.rule.padding.begin(), call.rule.padding.end());
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    RECORD_FUNCTION("welkin::convolution_backward", std::vector<c10::IValue>());
    const auto saved = context->get_saved_variables();
    BoxCall call{.rule = {},
                 .kink = {context->saved_data["slope"].toDouble()},
                 .way = context->saved_data["way"].toBool() ? BoxWay::Up : BoxWay::Down};
    const auto stride = context->saved_data["stride"].toIntVector();
    const auto padding = context->saved_data["padding"].toIntVector();
    std::copy_n(stride.begin(), kBoxAxes, call.rule.stride.begin());
    std::copy_n(padding.begin(), kBoxAxes, call.rule.padding.begin());
    const size_t two = saved[1].defined() ? 1 : 0;  // an input more
    const BoxWanted wanted{.x = context->needs_input_grad(0) || (two == 1 && context->needs_input_grad(1)),
                           .weight = context->needs_input_grad(1 + two),
                           .bias = context->needs_input_grad(2 + two)};
    BoxGradients gradients = convolution_cpu_backward(call, {parts_of(saved[0], saved[1]), saved[2]}, saved[3], grads[0], wanted);
    gradients.x.resize(2);
    return {gradients.x[0], gradients.x[1], gradients.weight, gradients.bias, at::Tensor()};
  }

  static std::vector<at::Tensor> parts_of(const at::Tensor& first, const at::Tensor& second) {
    return second.defined() ? std::vector<at::Tensor>{first, second} : std::vector<at::Tensor>{first};
  }
};

at::Tensor joined(at::TensorList x) { return x.size() == 1 ? x.front() : at::cat(x, 1); }

// In place, as x is nobody else's.
at::Tensor bent(at::Tensor x, const BoxKink& kink) {
  if (kink.slope == 1.0) return x;
  return kink.slope == 0.0 ? at::relu_(x) : at::leaky_relu_(x, kink.slope);
}

at::Tensor reference_product(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const BoxCall& call) {
  return call.way == BoxWay::Down ? convolution3d_reference(x, weight, bias, call.rule, call.kink)
                                  : transposed_convolution3d_reference(x, weight, bias, call.rule, call.kink);
}

// Of operands in a type that the processor does not multiply: in float32, rounded once.
at::Tensor widened_reference(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const BoxCall& call) {
  const AutocastGuard as_they_are(at::kCPU, std::nullopt);
  const at::ScalarType type = x.front().scalar_type();
  std::vector<at::Tensor> wide;
  for (const at::Tensor& part : x) wide.push_back(part.to(at::kFloat));
  const at::Tensor wide_bias = bias.defined() ? bias.to(at::kFloat) : bias;
  return reference_product(wide, weight.to(type).to(at::kFloat), wide_bias, call).to(type);
}

at::Tensor box_product(at::TensorList x_in, const at::Tensor& weight, const at::Tensor& bias, const BoxCall& call) {
  std::vector<at::Tensor> x;
  for (const at::Tensor& part : x_in) x.push_back(cast_operand(part, OperatorClass::Product));
  WELKIN_CHECK(x.size() == 1 || x.size() == 2, "a convolution takes one or two tensors");
  if (convolution_cpu_takes(x, weight, call.way)) {
    return BoxProduct::apply(x.front(), x.size() == 2 ? std::optional(x.back()) : std::nullopt, weight, bias, call);
  }
  if (widens_products(x.front().device(), x.front().scalar_type())) return widened_reference(x, weight, bias, call);
  return reference_product(x_in, weight, bias, call);
}

}  // namespace

// Asked of the rule itself.
std::string convolution_form(c10::Device device, at::ScalarType dtype) {
  if (!device.is_cpu()) return "aten";
  const at::Tensor box = at::zeros({1, kChannelMultiple, 1, 1, 1}, dtype);
  const at::Tensor weight = at::zeros({kChannelMultiple, kChannelMultiple, 1, 1, 1});
  return convolution_cpu_takes(box, weight, BoxWay::Down) ? cat("welkin for multiples of ", kChannelMultiple) : "aten";
}

at::Tensor convolution3d(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const BoxStride& rule,
                         const BoxKink& kink) {
  return box_product(x, weight, bias, {rule, kink, BoxWay::Down});
}

at::Tensor convolution3d_reference(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const BoxStride& rule,
                                   const BoxKink& kink) {
  return bent(at::conv3d(joined(x), weight, bias, rule.stride, rule.padding), kink);
}

at::Tensor transposed_convolution3d(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias, const BoxStride& rule,
                                    const BoxKink& kink) {
  return box_product(x, weight, bias, {rule, kink, BoxWay::Up});
}

at::Tensor transposed_convolution3d_reference(at::TensorList x, const at::Tensor& weight, const at::Tensor& bias,
                                              const BoxStride& rule, const BoxKink& kink) {
  return bent(at::conv_transpose3d(joined(x), weight, bias, rule.stride, rule.padding), kink);
}

}  // namespace welkin::ops
