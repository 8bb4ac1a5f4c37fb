// SPDX-License-Identifier: Apache-2.0
// The matmuls are aten's: they take most of the time.
#include "ops/gemm/gelu_linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/linear.h>
#include <torch/csrc/autograd/custom_function.h>

#include <initializer_list>
#include <optional>

#include "ops/base/autocast.h"
#include "ops/base/once_differentiable.h"
#include "ops/device/device_ops.h"
#include "ops/gemm/bias_gradient.h"
#include "ops/gemm/gelu_cpu.h"
#include "ops/gemm/mixed_matmul.h"

namespace welkin::ops {
namespace {

// The kernels for tensors of this device: installed ones before built-in ones. Null if there are none.
const DeviceGelu* gelu_of(c10::DeviceType device) {
  for (const DeviceGelu* table : std::initializer_list<const DeviceGelu*>{&device_ops().gelu, &cpu_gelu()}) {
    if (table->forward != nullptr && table->device == device) return table;
  }
  return nullptr;
}

// True if the CPU's kernels take and make the operands of a widened matmul.
bool takes_widened(const at::Tensor& x) {
  return gelu_of(x.device().type()) == &cpu_gelu() && x.scalar_type() == at::kBFloat16 &&
         upcasts_matmul(x.device(), at::kBFloat16);
}

// As an operand.
at::Tensor bias_gelu(const at::Tensor& x, const at::Tensor& x_bias) {
  return takes_widened(x) ? widened_bias_gelu(x, x_bias) : matmul_operand(gelu_of(x.device().type())->forward(x, x_bias));
}

// `gelu` is already an operand.
at::Tensor gelu_matmul(const at::Tensor& gelu, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                       at::ScalarType low) {
  const at::Tensor operand_bias = bias ? matmul_operand(*bias, low) : at::Tensor();
  return matmul_linear(gelu, matmul_operand(weight, low), operand_bias, low);
}

// grad: of the linear layer's result, as an operand. `out` is one, too.
GeluGradients bias_gelu_gradients(const at::Tensor& grad, const at::Tensor& weight, const at::Tensor& x,
                                  const at::Tensor& x_bias) {
  const at::ScalarType low = x.scalar_type();
  if (takes_widened(x)) return widened_bias_gelu_backward(linear_grad_input_in_float(grad, weight, x.sizes(), low), x, x_bias);
  GeluGradients gradients = gelu_of(x.device().type())->backward(linear_grad_input(grad, weight, x.sizes(), low, low), x, x_bias);
  gradients.out = matmul_operand(gradients.out);
  return gradients;
}

void keep_bias_type(torch::autograd::AutogradContext& context, const std::optional<at::Tensor>& bias) {
  if (bias) context.saved_data["bias_type"] = static_cast<int64_t>(bias->scalar_type());
}

// Undefined without a bias, which is then not an input either.
at::Tensor grad_bias(const torch::autograd::AutogradContext& context, size_t input, const at::Tensor& grad, at::ScalarType low) {
  if (context.saved_data.count("bias_type") == 0 || !context.needs_input_grad(input)) return {};
  const auto type = static_cast<at::ScalarType>(context.saved_data.at("bias_type").toInt());
  if (type == at::kFloat && has_column_sums(grad)) return device_ops().leaky_relu.column_sums(grad.contiguous());
  return linear_grad_bias(grad, low, type);
}

struct GeluLinear : torch::autograd::Function<GeluLinear> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    context->save_for_backward({x, weight});
    keep_bias_type(*context, bias);
    return gelu_matmul(matmul_operand(at::gelu(x)), weight, bias, x.scalar_type());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor grad = matmul_operand(grads[0].reshape({-1, weight.size(0)}));
    torch::autograd::variable_list gradients(3);
    const at::ScalarType low = x.scalar_type();
    if (context->needs_input_grad(1)) gradients[1] = linear_grad_weight(grad, at::gelu(x), weight, low);
    if (context->needs_input_grad(0)) gradients[0] = at::gelu_backward(linear_grad_input(grad, weight, x.sizes(), low, low), x);
    gradients[2] = grad_bias(*context, 2, grad, low);
    return gradients;
  }
};

// The same with a bias of x, which stays unchanged: only the previous matmul's result is kept.
struct BiasGeluLinear : torch::autograd::Function<BiasGeluLinear> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& x_bias,
                            const at::Tensor& weight, const std::optional<at::Tensor>& bias) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    context->save_for_backward({x, x_bias, weight});
    keep_bias_type(*context, bias);
    return gelu_matmul(bias_gelu(x, x_bias), weight, bias, x.scalar_type());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    once_differentiable("linear of GELU with a bias");  // its kernel overwrites a matmul's result
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[2];
    const at::Tensor grad = matmul_operand(grads[0].reshape({-1, weight.size(0)}));
    const at::ScalarType low = x.scalar_type();
    if (!context->needs_input_grad(0) && !context->needs_input_grad(1)) {  // a delayed weight gradient (zero_bubble)
      return {at::Tensor(), at::Tensor(), linear_grad_weight_by_operand(grad, bias_gelu(x, saved[1]), weight, low),
              grad_bias(*context, 3, grad, low)};
    }
    const GeluGradients gelu = bias_gelu_gradients(grad, weight, x, saved[1]);
    torch::autograd::variable_list gradients{gelu.grad_x, gelu.grad_bias, at::Tensor(), at::Tensor()};
    if (context->needs_input_grad(2)) gradients[2] = linear_grad_weight_by_operand(grad, gelu.out, weight, low);
    gradients[3] = grad_bias(*context, 3, grad, low);
    return gradients;
  }
};

// Returns the bias uncast if its gradient is summed in float32; the matmul casts it.
std::optional<at::Tensor> own_bias(const at::Tensor& x, const at::Tensor& bias) {
  if (!bias.defined()) return std::nullopt;
  return has_column_sums(x) && bias.scalar_type() == at::kFloat ? bias : matmul_weight(bias);
}

// The CPU kernels leave half to aten.
bool is_kernel_type(const at::Tensor& x) {
  const at::ScalarType type = x.scalar_type();
  return type == at::kFloat || type == at::kBFloat16 || (type == at::kHalf && !x.is_cpu());
}

}  // namespace

bool fuses_bias_gelu(const at::Tensor& x_bias) {
  return x_bias.defined() && x_bias.scalar_type() == at::kFloat && x_bias.is_contiguous() &&
         gelu_of(x_bias.device().type()) != nullptr;
}

at::Tensor bias_gelu_linear(const at::Tensor& x, const at::Tensor& x_bias, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor low = cast_operand(x, OperatorClass::Matmul);
  const bool is_one_type = is_kernel_type(low) && low.scalar_type() == operand_type(weight, OperatorClass::Matmul);
  const bool bias_fits = x_bias.dim() == 1 && x_bias.size(0) == low.size(-1);
  if (!fuses_bias_gelu(x_bias) || !bias_fits || !is_one_type || low.numel() == 0) {
    return gelu_linear(low.add(x_bias.to(low.scalar_type())), weight, bias);
  }
  return BiasGeluLinear::apply(low.contiguous(), x_bias, matmul_weight(weight), own_bias(low, bias));
}

at::Tensor gelu_linear_reference(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::linear(at::gelu(x), weight, bias);
}

at::Tensor gelu_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor low = cast_operand(x, OperatorClass::Matmul);
  return GeluLinear::apply(low, matmul_weight(weight), own_bias(low, bias));
}

}  // namespace welkin::ops
