// SPDX-License-Identifier: Apache-2.0
#include "parallel/tokens/column_input.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "ops/base/autocast.h"
#include "ops/base/once_differentiable.h"
#include "ops/gemm/mixed_matmul.h"
#include "ops/norm/layer_norm.h"
#include "parallel/comm/widened.h"

namespace welkin::parallel {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

constexpr int64_t kColumnTokens = 1;

}  // namespace

// State of one forward pass, and the sums that its backward pass sends.
struct ColumnInput::Source : torch::CustomClassHolder {
  Source(Group of, std::optional<Lengths> parts, std::shared_ptr<WeightQueue> later, const at::Tensor& values)
      : group(std::move(of)),
        lengths(std::move(parts)),
        queue(std::move(later)),
        norm(ops::norm_result(values)),
        own(norm ? at::Tensor() : values.detach()),
        type(values.scalar_type()),
        matmul_type(type) {}

  // Called when a matmul of the backward pass begins.
  void begin() {
    if (left > 0) return;
    left = matmuls;
    if (norm) own = norm->recompute(matmul_type);
    if (lengths && !queue) gathering = start_all_gather(group, own, kColumnTokens, *lengths);
  }

  // Adds a matmul's input gradient. The last call starts and returns the sum over the members; earlier calls return nothing.
  at::Tensor add(const at::Tensor& gradient) {
    if (gradient.defined()) sum = sum.defined() ? sum.add_(gradient) : gradient;
    if (--left > 0 || !sum.defined()) return {};
    summing =
        lengths ? start_reduce_scatter(group, widened(sum), kColumnTokens, *lengths) : start_all_reduce(group, widened(sum));
    return sum;
  }

  // The input of the matmuls, in their type.
  at::Tensor whole() {
    if (!lengths) return own;
    if (gathering.pending()) gathered = gathering.wait();
    if (!gathered.defined()) gathered = all_gather(group, own, kColumnTokens, *lengths);  // nobody has waited for it
    return gathered;
  }

  // Delays the gradient of this parameter. For `grad` (rows, out), which has the type of the matmul already.
  void make_later(const at::Tensor& grad, const at::Tensor& parameter) {
    ++waiting;
    const auto self = c10::intrusive_ptr<Source>::reclaim_copy(this);
    queue->now.add(parameter, [self, grad, parameter] {
      at::Tensor gradient = ops::linear_grad_weight(grad, self->whole(), parameter, self->matmul_type);
      --self->waiting;
      self->end_matmul();
      return gradient;
    });
  }

  void end_matmul() {
    if (left > 0 || waiting > 0) return;
    if (gathering.pending()) gathering.wait();  // no weight's gradient was requested
    gathered.reset();
    if (norm) own.reset();
  }

  // The gradient of the own part, from that of the whole as it comes from the graph. It is the very sum that was sent, unless
  // the input had other users than the matmuls, or some matmuls had no gradient.
  at::Tensor leave(const at::Tensor& gradient) {
    at::Tensor total = gradient;
    if (left > 0) {
      left = 0;
      end_matmul();
      if (sum.defined()) total = total.add(sum);
    }
    at::Tensor result;
    if (summing.pending()) result = summing.wait();
    if (!gradient.is_same(sum)) {
      result = lengths ? reduce_scatter(group, widened(total), kColumnTokens, *lengths) : all_reduce(group, widened(total));
    }
    sum.reset();
    return result.to(gradient.scalar_type());
  }

  // The layer's weak pointer keeps the object, but its contents are freed with the graph.
  void release_resources() override {
    norm.reset();
    for (at::Tensor* values : {&own, &gathered, &sum}) values->reset();
    gathering = {};
    summing = {};
  }

  Group group;
  std::optional<Lengths> lengths;
  std::shared_ptr<WeightQueue> queue;        // null: weight gradients are not delayed
  c10::intrusive_ptr<ops::NormResult> norm;  // the norm whose result is the own part; recomputed for a backward pass
  at::Tensor own;                            // in the type of the matmuls
  at::ScalarType type;                       // type of the input
  at::ScalarType matmul_type;
  int matmuls = 0;  // matmuls with a backward pass
  int left = 0;
  int waiting = 0;  // delayed weight gradients in the queue
  PendingTensor gathering, summing;
  at::Tensor gathered;
  at::Tensor sum;  // of the matmuls' gradients of the whole input
};

struct ColumnInput::Entrance : torch::autograd::Function<Entrance> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& own, const c10::intrusive_ptr<Source>& source) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    context->saved_data["source"] = c10::IValue::make_capsule(source);
    return source->lengths ? all_gather(source->group, own, kColumnTokens, *source->lengths) : own.view_as(own);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    ops::once_differentiable("input of column-split matmuls");
    const auto holder = context->saved_data["source"].toCapsule();
    return {static_cast<Source&>(*holder).leave(grads[0]), {}};
  }
};

struct ColumnInput::Matmul : torch::autograd::Function<Matmul> {
  // Values that are not part of the graph.
  struct Values {
    at::Tensor x;          // in the type of the matmul; gradients are summed in the original type
    at::Tensor parameter;  // the weight may be a cast of it
  };

  static at::Tensor forward(AutogradContext* context, const at::Tensor& /*x*/, const at::Tensor& weight, const Values& values,
                            const c10::intrusive_ptr<Source>& source) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    context->save_for_backward({weight});
    context->saved_data["source"] = c10::IValue::make_capsule(source);
    if (source->queue) context->saved_data["parameter"] = values.parameter;
    return ops::matmul_linear(ops::matmul_operand(values.x), ops::matmul_operand(weight), {}, values.x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    ops::once_differentiable("column-split matmul");
    const at::Tensor weight = context->get_saved_variables()[0];
    const auto holder = context->saved_data["source"].toCapsule();
    auto& source = static_cast<Source&>(*holder);
    const bool has_weight_grad = context->needs_input_grad(1);
    source.begin();
    const at::Tensor grad = ops::matmul_operand(grads[0].reshape({-1, weight.size(0)}));
    std::vector<int64_t> sizes = grads[0].sizes().vec();
    sizes.back() = weight.size(1);
    variable_list gradients(4);
    at::Tensor by_input;
    if (context->needs_input_grad(0)) by_input = ops::linear_grad_input(grad, weight, sizes, source.matmul_type, source.type);
    gradients[0] = source.add(by_input);
    if (has_weight_grad && source.queue) {
      source.make_later(grad, context->saved_data["parameter"].toTensor());
    } else if (has_weight_grad) {
      gradients[1] = ops::linear_grad_weight(grad, source.whole(), weight, source.matmul_type);
    }
    source.end_matmul();
    return gradients;
  }
};

struct ColumnInput::State {
  Group group;
  std::optional<Lengths> lengths;
  std::shared_ptr<WeightQueue> queue;
  // The last forward pass, if gradients will be requested; its graph owns it.
  c10::weak_intrusive_ptr<Source> source{c10::intrusive_ptr<Source>()};
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> entered{
      c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>()};
};

ColumnInput::ColumnInput(Group group, std::optional<Lengths> lengths, std::shared_ptr<WeightQueue> queue)
    : state_(std::make_unique<State>()) {
  state_->group = std::move(group);
  state_->lengths = std::move(lengths);
  state_->queue = std::move(queue);
}
ColumnInput::~ColumnInput() = default;

at::Tensor ColumnInput::enter(const at::Tensor& own) {
  const auto source = c10::make_intrusive<Source>(state_->group, state_->lengths, state_->queue, own);
  at::Tensor entered = Entrance::apply(own, source);
  const bool differentiated = at::GradMode::is_enabled() && entered.requires_grad();
  state_->source = differentiated ? source : c10::intrusive_ptr<Source>();
  state_->entered = entered.getIntrusivePtr();
  return entered;
}

std::optional<at::Tensor> ColumnInput::matmul(const at::Tensor& x, const at::Tensor& weight) {
  const c10::intrusive_ptr<Source> source = state_->source.lock();
  if (!source || state_->entered.lock() != x.getIntrusivePtr()) return std::nullopt;
  at::Tensor operand = ops::cast_operand(x.detach(), ops::OperatorClass::Matmul);
  source->matmul_type = operand.scalar_type();
  if (source->own.defined()) {
    if (source->own.scalar_type() != operand.scalar_type()) {
      source->own = source->lengths ? source->own.to(operand.scalar_type()) : operand;
    }
    if (!source->lengths) operand = source->own;  // cast once for all matmuls
  }
  ++source->matmuls;
  return Matmul::apply(x, ops::cast_operand(weight, ops::OperatorClass::Matmul), Matmul::Values{operand, weight}, source);
}

}  // namespace welkin::parallel
