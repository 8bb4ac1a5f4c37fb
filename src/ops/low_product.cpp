// SPDX-License-Identifier: Apache-2.0
#include "ops/low_product.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>

#include <atomic>
#include <optional>

#include "ops/autocast.h"
#include "ops/instruction_support.h"

namespace welkin::ops {
namespace {

enum class Widening { AsTheProcessorIs, Always, Never };

// Read by every thread that multiplies; a test changes it.
std::atomic<Widening> widening{Widening::AsTheProcessorIs};

// Operands that were widened must not be cast down again.
class WithoutAutocast {
  c10::impl::ExcludeDispatchKeyGuard guard_{c10::autocast_dispatch_keyset};
};

struct WideLinear : torch::autograd::Function<WideLinear> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    context->save_for_backward({x, weight});
    context->saved_data["bias"] = bias.has_value();
    return product_linear(product_operand(x), product_operand(weight), bias.value_or(at::Tensor()), x.scalar_type());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor grad = product_operand(grads[0].reshape({-1, weight.size(0)}));
    torch::autograd::variable_list gradients(3);
    if (context->needs_input_grad(0)) gradients[0] = linear_by_input(grad, weight, x.sizes());
    if (context->needs_input_grad(1)) gradients[1] = linear_by_weight(grad, x, weight);
    // The bias is an input only where there is one.
    if (context->saved_data["bias"].toBool() && context->needs_input_grad(2)) gradients[2] = grad.sum(0).to(x.scalar_type());
    return gradients;
  }
};

}  // namespace

bool widens_products(c10::Device device, at::ScalarType type) {
  if (!device.is_cpu() || (type != at::kBFloat16 && type != at::kHalf)) return false;
  const Widening rule = widening;
  if (rule != Widening::AsTheProcessorIs) return rule == Widening::Always;
  return type == at::kBFloat16 ? !cpu_multiplies_bf16() : !cpu_multiplies_fp16();
}

WideProductsGuard::WideProductsGuard(bool widens) { widening = widens ? Widening::Always : Widening::Never; }
WideProductsGuard::~WideProductsGuard() { widening = Widening::AsTheProcessorIs; }

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const auto low = [](const at::Tensor& operand) { return cast_operand(operand, OperatorClass::Product); };
  const at::Tensor operand = low(x);
  if (!widens_products(operand.device(), operand.scalar_type())) return at::linear(operand, weight, bias);
  return WideLinear::apply(operand, low(weight), bias.defined() ? std::optional(low(bias)) : std::nullopt);
}

at::Tensor product_operand(const at::Tensor& x) { return widens_products(x.device(), x.scalar_type()) ? x.to(at::kFloat) : x; }

at::Tensor product(const at::Tensor& a, const at::Tensor& b, at::ScalarType type) {
  const WithoutAutocast as_they_are;
  return at::mm(a, b).to(type);
}

at::Tensor product_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::ScalarType type) {
  const WithoutAutocast as_they_are;
  return at::linear(x, weight, bias.defined() ? bias.to(x.scalar_type()) : bias).to(type);
}

at::Tensor linear_by_input(const at::Tensor& grad, const at::Tensor& weight, at::IntArrayRef sizes) {
  return product(grad, product_operand(weight), weight.scalar_type()).view(sizes);
}

at::Tensor linear_by_weight(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight) {
  return product(grad.t(), product_operand(x.reshape({-1, weight.size(1)})), weight.scalar_type());
}

}  // namespace welkin::ops
