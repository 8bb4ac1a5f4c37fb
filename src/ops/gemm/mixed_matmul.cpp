// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/mixed_matmul.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>

#include <atomic>
#include <optional>
#include <vector>

#include "ops/base/autocast.h"
#include "ops/base/instruction_support.h"
#include "ops/base/once_differentiable.h"
#include "ops/gemm/amx_matmul.h"
#include "ops/norm/layer_norm.h"

namespace welkin::ops {
namespace {

enum class Widening { AsTheProcessorIs, Always, Never };

// Read by every thread that multiplies; a test changes it.
std::atomic<Widening> widening{Widening::AsTheProcessorIs};

// Operands that were widened must not be cast down again.
class WithoutAutocast {
  c10::impl::ExcludeDispatchKeyGuard guard_{c10::autocast_dispatch_keyset};
};

// Whether the matmul of this layer is one that tiles take. A bias of another shape is broadcast, or refused, by aten.
bool is_linear_of_tiles(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const bool bias_fits = !bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0));
  return bias_fits && x.is_contiguous() && x.numel() > 0 &&
         amx_matmul_supports(x.detach().view({-1, x.size(-1)}), weight.detach().t());
}

// What at::linear has no form for: widened matmuls, those of tiles, and an input that is a norm's result, which is not kept.
struct OwnLinear : torch::autograd::Function<OwnLinear> {
  // `result` is x's, or null.
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const c10::intrusive_ptr<NormResult>& result) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const at::Tensor operand = cast_operand(x, OperatorClass::Matmul);
    context->save_for_backward({result ? at::Tensor() : x, weight});
    context->saved_data["bias"] = bias.has_value();
    context->saved_data["sizes"] = x.sizes();
    context->saved_data["type"] = static_cast<int64_t>(x.scalar_type());
    if (result) context->saved_data["result"] = c10::IValue::make_capsule(result);
    return matmul_linear(matmul_operand(operand), matmul_operand(weight), bias.value_or(at::Tensor()), operand.scalar_type());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = context->get_saved_variables();
    if (!saved[0].defined()) once_differentiable("linear of a layer norm's result");  // which comes back without its graph
    const at::Tensor& weight = saved[1];
    const at::Tensor grad = matmul_operand(grads[0].reshape({-1, weight.size(0)}));
    torch::autograd::variable_list gradients(4);
    if (context->needs_input_grad(0)) {
      const auto type = static_cast<at::ScalarType>(context->saved_data["type"].toInt());
      gradients[0] = linear_grad_input(grad, weight, context->saved_data["sizes"].toIntVector()).to(type);
    }
    if (context->needs_input_grad(1)) {
      gradients[1] =
          linear_grad_weight(grad, saved[0].defined() ? saved[0] : result_again(*context, weight.scalar_type()), weight);
    }
    // The bias is an input only where there is one.
    if (context->saved_data["bias"].toBool() && context->needs_input_grad(2)) {
      gradients[2] = grad.sum(0).to(weight.scalar_type());
    }
    return gradients;
  }

  static at::Tensor result_again(torch::autograd::AutogradContext& context, at::ScalarType type) {
    const auto holder = context.saved_data["result"].toCapsule();
    return static_cast<NormResult&>(*holder).recompute(type);
  }
};

}  // namespace

bool upcasts_matmul(c10::Device device, at::ScalarType type) {
  if (!device.is_cpu() || (type != at::kBFloat16 && type != at::kHalf)) return false;
  const Widening rule = widening;
  if (rule != Widening::AsTheProcessorIs) return rule == Widening::Always;
  return type == at::kBFloat16 ? !cpu_multiplies_bf16() : !cpu_multiplies_fp16();
}

UpcastMatmulGuard::UpcastMatmulGuard(bool widens) { widening = widens ? Widening::Always : Widening::Never; }
UpcastMatmulGuard::~UpcastMatmulGuard() { widening = Widening::AsTheProcessorIs; }

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const auto low = [](const at::Tensor& operand) { return cast_operand(operand, OperatorClass::Matmul); };
  const auto low_bias = [&] { return bias.defined() ? std::optional(low(bias)) : std::nullopt; };
  if (const auto result = norm_result(x)) return OwnLinear::apply(x, low(weight), low_bias(), result);
  const at::Tensor operand = low(x);
  if (!upcasts_matmul(operand.device(), operand.scalar_type()) && !is_linear_of_tiles(operand, weight, bias)) {
    return at::linear(operand, weight, bias);
  }
  return OwnLinear::apply(operand, low(weight), low_bias(), c10::intrusive_ptr<NormResult>());
}

std::vector<at::Tensor> linears(const at::Tensor& x, at::TensorList weights, at::TensorList biases) {
  // Where operands are widened, one matmul widens x once.
  if (x.is_cuda() || upcasts_matmul(x.device(), operand_type(biases.front(), OperatorClass::Matmul)))
    return fused_linears(x, weights, biases);
  std::vector<at::Tensor> matmuls;
  for (size_t i = 0; i < weights.size(); ++i) matmuls.push_back(linear(x, weights[i], biases[i]));
  return matmuls;
}

// The weights are small beside x.
std::vector<at::Tensor> fused_linears(const at::Tensor& x, at::TensorList weights, at::TensorList biases) {
  std::vector<int64_t> widths;
  for (const at::Tensor& weight : weights) widths.push_back(weight.size(0));
  return linear(x, at::cat(weights), at::cat(biases)).split_with_sizes(widths, -1);
}

at::Tensor matmul_operand(const at::Tensor& x) { return upcasts_matmul(x.device(), x.scalar_type()) ? x.to(at::kFloat) : x; }

at::Tensor matmul(const at::Tensor& a, const at::Tensor& b, at::ScalarType type) {
  if (amx_matmul_supports(a, b)) return amx_matmul(a, b).to(type);
  const WithoutAutocast as_they_are;
  return at::mm(a, b).to(type);
}

at::Tensor matmul_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::ScalarType type) {
  if (is_linear_of_tiles(x, weight, bias)) {
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.back() = weight.size(0);
    return amx_matmul(x.view({-1, x.size(-1)}), weight.t(), bias).view(sizes).to(type);
  }
  const WithoutAutocast as_they_are;
  return at::linear(x, weight, bias.defined() ? bias.to(x.scalar_type()) : bias).to(type);
}

at::Tensor linear_grad_input(const at::Tensor& grad, const at::Tensor& weight, at::IntArrayRef sizes) {
  return matmul(grad, matmul_operand(weight), weight.scalar_type()).view(sizes);
}

at::Tensor linear_grad_weight(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight) {
  return matmul(grad.t(), matmul_operand(x.reshape({-1, weight.size(1)})), weight.scalar_type());
}

}  // namespace welkin::ops
