// SPDX-License-Identifier: Apache-2.0
// Which form runs, and the gradient of our own.
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include "ops/attention.h"
#include "ops/attention_cpu.h"
#include "ops/autocast.h"

namespace welkin::ops {
namespace {

struct CpuAttention : torch::autograd::Function<CpuAttention> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    RECORD_FUNCTION("welkin::attention", std::vector<c10::IValue>());
    auto [out, log2_sum] = attention_cpu_forward(q, k, v);
    context->save_for_backward({q, k, v, out, log2_sum});
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    RECORD_FUNCTION("welkin::attention_backward", std::vector<c10::IValue>());
    const auto saved = context->get_saved_variables();
    auto [grad_q, grad_k, grad_v] = attention_cpu_backward(grads[0], saved[0], saved[1], saved[2], saved[3], saved[4]);
    return {grad_q, grad_k, grad_v};
  }
};

}  // namespace

at::Tensor attention_reference(const at::Tensor& q_BHND, const at::Tensor& k_BHMD, const at::Tensor& v_BHMD) {
  return at::scaled_dot_product_attention(q_BHND, k_BHMD, v_BHMD);
}

// Asked of the rule itself.
std::string attention_form(c10::Device device, at::ScalarType dtype, bool dropout) {
  if (dropout) return "tiles of aten";
  if (!device.is_cpu()) return "aten";
  const at::Tensor one = at::zeros({1, 1, 1, 8}, dtype);
  return attention_cpu_takes(one, one, one) ? "welkin" : "aten";
}

at::Tensor attention(const at::Tensor& q_BHND, const at::Tensor& k_BHMD, const at::Tensor& v_BHMD) {
  const at::Tensor q = cast_operand(q_BHND, OperatorClass::Product);
  const at::Tensor k = cast_operand(k_BHMD, OperatorClass::Product);
  const at::Tensor v = cast_operand(v_BHMD, OperatorClass::Product);
  if (!attention_cpu_takes(q, k, v)) return attention_reference(q, k, v);
  return CpuAttention::apply(q, k, v);
}

}  // namespace welkin::ops
