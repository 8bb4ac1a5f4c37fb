// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/mixed_matmul.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <vector>

#include "ops/base/autocast.h"
#include "ops/base/instruction_support.h"
#include "ops/base/once_differentiable.h"
#include "ops/gemm/amx_matmul.h"
#include "ops/gemm/bf16_casts.h"
#include "ops/gemm/bias_gradient.h"
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

// True if tiles can multiply this layer. Aten broadcasts, or refuses, a bias of another shape.
bool is_linear_of_tiles(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const bool bias_fits = !bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0));
  return bias_fits && x.is_contiguous() && x.numel() > 0 &&
         amx_matmul_supports(x.detach().view({-1, x.size(-1)}), weight.detach().t());
}

// a b, in the type of the operands.
at::Tensor unrounded_matmul(const at::Tensor& a, const at::Tensor& b) {
  const WithoutAutocast as_they_are;
  return amx_matmul_supports(a, b) ? amx_matmul(a, b) : at::mm(a, b);
}

// a b, rounded to `low`, in the type `to`.
at::Tensor matmul_of_operands(const at::Tensor& a, const at::Tensor& b, at::ScalarType low, at::ScalarType to) {
  const WithoutAutocast as_they_are;
  const at::Tensor product = unrounded_matmul(a, b);
  if (product.scalar_type() == low) return product.to(to);
  return to == product.scalar_type() ? rounded_in_place(product, low) : narrowed(product, low).to(to);
}

// Weights (out, in) of one x as one operand, whose rows are those of the first, then of the second.
at::Tensor operand_of(at::TensorList weights, at::ScalarType low) {
  if (weights.size() == 1) return matmul_operand(weights.front(), low);
  const bool rounds = upcasts_matmul(weights.front().device(), low) &&
                      std::ranges::all_of(weights, [](const at::Tensor& w) { return w.scalar_type() == at::kFloat; });
  return rounds ? rounded_rows(weights, low) : matmul_operand(at::cat(weights), low);
}

// For matmuls that at::linear lacks: widened ones, those by tiles, and ones with a norm's result as input, which is not kept.
// Several weights are joined for the matmuls alone, and kept as they are.
struct OwnLinear : torch::autograd::Function<OwnLinear> {
  // `result`: of the norm that made x, or null. x is already cast, unless it is a norm's result.
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, at::TensorList weights,
                            const std::optional<at::Tensor>& bias, const c10::intrusive_ptr<NormResult>& result) {
    const at::ScalarType low = operand_type(x, OperatorClass::Matmul);
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    torch::autograd::variable_list saved{result ? at::Tensor() : x};
    saved.insert(saved.end(), weights.begin(), weights.end());
    context->save_for_backward(std::move(saved));
    if (bias) context->saved_data["bias_type"] = static_cast<int64_t>(bias->scalar_type());
    context->saved_data["sizes"] = x.sizes();
    context->saved_data["type"] = static_cast<int64_t>(x.scalar_type());
    context->saved_data["low"] = static_cast<int64_t>(low);
    if (result) context->saved_data["result"] = c10::IValue::make_capsule(result);
    const at::Tensor operand_bias = bias ? matmul_operand(*bias, low) : at::Tensor();
    return matmul_linear(matmul_operand(x, low), operand_of(weights, low), operand_bias, low);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = context->get_saved_variables();
    if (!saved[0].defined()) once_differentiable("linear of a layer norm's result");  // the recomputed result has no graph
    const at::TensorList weights = at::TensorList(saved).slice(1);
    const at::ScalarType low = type_of(*context, "low");
    const at::Tensor grad = matmul_operand(grads[0].reshape({-1, grads[0].size(-1)}));
    const size_t bias_index = 1 + weights.size();
    torch::autograd::variable_list gradients(bias_index + 2);
    if (context->needs_input_grad(0)) {
      const std::vector<int64_t> sizes = context->saved_data["sizes"].toIntVector();
      gradients[0] = matmul_of_operands(grad, operand_of(weights, low), low, type_of(*context, "type")).view(sizes);
    }
    const auto is_trained = [&](size_t i) { return context->needs_input_grad(1 + i); };
    bool is_any_trained = false;
    for (size_t i = 0; i < weights.size(); ++i) is_any_trained |= is_trained(i);
    if (is_any_trained) {
      const at::ScalarType kept = upcasts_matmul(grad.device(), low) ? type_of(*context, "type") : low;
      const at::Tensor x = saved[0].defined() ? saved[0] : result_again(*context, kept);
      const at::Tensor joint = linear_grad_weight(grad, x, weights.front(), low);
      int64_t row = 0;
      for (size_t i = 0; i < weights.size(); row += weights[i++].size(0)) {
        const bool is_alone = weights.size() == 1;
        if (is_trained(i)) gradients[1 + i] = is_alone ? joint : joint.narrow(0, row, weights[i].size(0));
      }
    }
    // The bias is an input only if there is one.
    if (context->saved_data.count("bias_type") != 0 && context->needs_input_grad(bias_index)) {
      gradients[bias_index] = linear_grad_bias(grad, low, type_of(*context, "bias_type"));
    }
    return gradients;
  }

  static at::ScalarType type_of(const torch::autograd::AutogradContext& context, const char* name) {
    return static_cast<at::ScalarType>(context.saved_data.at(name).toInt());
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
  const auto own_bias = [&] { return bias.defined() ? std::optional(matmul_weight(bias)) : std::nullopt; };
  if (const auto result = norm_result(x)) return OwnLinear::apply(x, at::TensorList(matmul_weight(weight)), own_bias(), result);
  const at::Tensor operand = low(x);
  if (!upcasts_matmul(operand.device(), operand.scalar_type()) && !is_linear_of_tiles(operand, weight, bias)) {
    return sums_bias_gradient(operand, bias) ? linear_with_own_bias_gradient(operand, weight, bias)
                                             : at::linear(operand, weight, bias);
  }
  return OwnLinear::apply(operand, at::TensorList(matmul_weight(weight)), own_bias(), c10::intrusive_ptr<NormResult>());
}

std::vector<at::Tensor> linears(const at::Tensor& x, at::TensorList weights, at::TensorList biases) {
  // If operands are widened, a single matmul widens x only once.
  if (x.is_cuda() || upcasts_matmul(x.device(), operand_type(biases.front(), OperatorClass::Matmul)))
    return fused_linears(x, weights, biases);
  std::vector<at::Tensor> matmuls;
  for (size_t i = 0; i < weights.size(); ++i) matmuls.push_back(linear(x, weights[i], biases[i]));
  return matmuls;
}

// The joined weights are small beside x. They are cast before they are kept: joining copies them anyway, and fewer bits make
// less. Where matmuls are widened, they are rounded on the way, and none are kept.
std::vector<at::Tensor> fused_linears(const at::Tensor& x, at::TensorList weights, at::TensorList biases) {
  std::vector<int64_t> widths;
  for (const at::Tensor& weight : weights) widths.push_back(weight.size(0));
  const at::ScalarType low = operand_type(x, OperatorClass::Matmul);
  const at::Tensor bias = at::cat(biases);
  if (!upcasts_matmul(x.device(), low)) {
    return linear(x, cast_operand(at::cat(weights), OperatorClass::Matmul), bias).split_with_sizes(widths, -1);
  }
  const auto result = norm_result(x);
  const at::Tensor operand = result ? x : cast_operand(x, OperatorClass::Matmul);
  std::vector<at::Tensor> kept;
  for (const at::Tensor& weight : weights) kept.push_back(matmul_weight(weight));
  return OwnLinear::apply(operand, at::TensorList(kept), std::optional(matmul_weight(bias)), result).split_with_sizes(widths, -1);
}

at::Tensor matmul_operand(const at::Tensor& x, at::ScalarType low) {
  const bool is_rounded = x.scalar_type() == at::kFloat && at::isReducedFloatingType(low);
  TORCH_CHECK(is_rounded || x.scalar_type() == low, "matmul: operands of one type, not ", x.scalar_type(), " and ", low);
  if (!upcasts_matmul(x.device(), low)) return x.to(low);
  return x.scalar_type() == at::kFloat ? rounded(x, low) : widened(x);
}

at::Tensor matmul_weight(const at::Tensor& weight) {
  const bool is_rounded =
      weight.scalar_type() == at::kFloat && upcasts_matmul(weight.device(), operand_type(weight, OperatorClass::Matmul));
  return is_rounded ? weight : cast_operand(weight, OperatorClass::Matmul);
}

at::Tensor matmul(const at::Tensor& a, const at::Tensor& b, at::ScalarType type) { return matmul_of_operands(a, b, type, type); }

at::Tensor matmul_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::ScalarType type) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  if (is_linear_of_tiles(x, weight, bias)) {
    return amx_matmul(x.view({-1, x.size(-1)}), weight.t(), bias).view(sizes).to(type);
  }
  const WithoutAutocast as_they_are;
  if (x.scalar_type() == type) return at::linear(x, weight, bias.defined() ? bias.to(type) : bias);
  return narrowed(at::mm(x.reshape({-1, x.size(-1)}), weight.t()), type, bias).view(sizes);
}

at::Tensor linear_grad_input(const at::Tensor& grad, const at::Tensor& weight, at::IntArrayRef sizes, at::ScalarType low,
                             at::ScalarType to) {
  return matmul_of_operands(grad, matmul_operand(weight, low), low, to).view(sizes);
}

at::Tensor linear_grad_input_in_float(const at::Tensor& grad, const at::Tensor& weight, at::IntArrayRef sizes,
                                      at::ScalarType low) {
  return unrounded_matmul(grad, matmul_operand(weight, low)).view(sizes);
}

at::Tensor linear_grad_weight(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight, at::ScalarType low) {
  return linear_grad_weight_by_operand(grad, matmul_operand(x.reshape({-1, weight.size(1)}), low), weight, low);
}

at::Tensor linear_grad_weight_by_operand(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight,
                                         at::ScalarType low) {
  return matmul_of_operands(grad.t(), x.reshape({-1, weight.size(1)}), low, weight.scalar_type());
}

at::Tensor linear_grad_bias(const at::Tensor& grad, at::ScalarType low, at::ScalarType to) { return grad.sum(0).to(low).to(to); }

}  // namespace welkin::ops
