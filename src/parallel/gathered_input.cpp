// SPDX-License-Identifier: Apache-2.0
#include "parallel/gathered_input.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "ops/autocast.h"
#include "parallel/differentiable.h"

namespace welkin::parallel {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What one forward pass leaves: the own part, in the type of the products, and how many of them will ask for the whole.
struct GatheredInput::Source : torch::CustomClassHolder {
  Source(Group of, Lengths parts, at::Tensor values) : group(std::move(of)), lengths(std::move(parts)), own(std::move(values)) {}

  // The products of one input share one gather: the first asks, the last lets go.
  at::Tensor whole() {
    if (left == 0) {
      gathered = all_gather(group, own, /*dim=*/1, lengths);
      left = products;
    }
    at::Tensor all = gathered;
    if (--left == 0) gathered.reset();
    return all;
  }

  Group group;
  Lengths lengths;
  at::Tensor own;
  int products = 0;
  int left = 0;
  at::Tensor gathered;
};

struct GatheredInput::Product : torch::autograd::Function<Product> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const c10::intrusive_ptr<Source>& source) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    context->save_for_backward({weight});
    context->saved_data["source"] = c10::IValue::make_capsule(source);
    return at::linear(x, weight);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const at::Tensor weight = context->get_saved_variables()[0];
    const auto holder = context->saved_data["source"].toCapsule();
    auto& source = static_cast<Source&>(*holder);
    const at::Tensor grad = grads[0].reshape({-1, weight.size(0)});
    std::vector<int64_t> sizes = grads[0].sizes().vec();
    sizes.back() = weight.size(1);
    variable_list gradients(3);
    if (context->needs_input_grad(0)) gradients[0] = at::mm(grad, weight).view(sizes);
    if (context->needs_input_grad(1)) gradients[1] = at::mm(grad.t(), source.whole().reshape({-1, weight.size(1)}));
    return gradients;
  }
};

GatheredInput::GatheredInput(Group group, Lengths lengths) : group_(std::move(group)), lengths_(std::move(lengths)) {}
GatheredInput::~GatheredInput() = default;

at::Tensor GatheredInput::enter(const at::Tensor& own) {
  at::Tensor gathered = gather_partial(group_, own, /*dim=*/1, lengths_);
  const bool differentiated = at::GradMode::is_enabled() && gathered.requires_grad();
  source_.reset();
  if (differentiated) source_ = c10::make_intrusive<Source>(group_, lengths_, own.detach());
  gathered_ = gathered.getIntrusivePtr();
  return gathered;
}

std::optional<at::Tensor> GatheredInput::product(const at::Tensor& x, const at::Tensor& weight) {
  if (!source_ || gathered_.lock() != x.getIntrusivePtr()) return std::nullopt;
  const at::Tensor operand = ops::cast_operand(x, ops::OperatorClass::Product);
  source_->own = source_->own.to(operand.scalar_type());
  ++source_->products;
  return Product::apply(operand, ops::cast_operand(weight, ops::OperatorClass::Product), source_);
}

}  // namespace welkin::parallel
