// SPDX-License-Identifier: Apache-2.0
// Chooses the form, and has the gradient of our own form.
#include "ops/attention/attention.h"

#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include "ops/attention/attention_cpu.h"
#include "ops/attention/attention_tiles_aten.h"
#include "ops/base/autocast.h"
#include "ops/base/once_differentiable.h"

namespace welkin::ops {
namespace {

struct CpuAttention : torch::autograd::Function<CpuAttention> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const WeightMask& mask) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    RECORD_FUNCTION("welkin::attention", std::vector<c10::IValue>());
    auto [out, log2_sum] = attention_cpu_forward(q, k, v, mask);
    context->save_for_backward({q, k, v, out, log2_sum, mask.key.step, mask.key.sample});
    context->saved_data["stream"] = static_cast<int64_t>(mask.key.stream);
    context->saved_data["rate"] = mask.rate;
    context->saved_data["global_shape"] = mask.window.global_shape;
    context->saved_data["offset"] = mask.window.offset;
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    once_differentiable("attention");
    RECORD_FUNCTION("welkin::attention_backward", std::vector<c10::IValue>());
    const auto saved = context->get_saved_variables();
    const WeightMask mask{context->saved_data["rate"].toDouble(),
                          {static_cast<uint64_t>(context->saved_data["stream"].toInt()), saved[5], saved[6]},
                          {context->saved_data["global_shape"].toIntVector(), context->saved_data["offset"].toIntVector()}};
    auto [grad_q, grad_k, grad_v] = attention_cpu_backward(grads[0], saved[0], saved[1], saved[2], saved[3], saved[4], mask);
    return {grad_q, grad_k, grad_v, {}};
  }
};

}  // namespace

at::Tensor attention_reference(const at::Tensor& q_BHND, const at::Tensor& k_BHMD, const at::Tensor& v_BHMD) {
  return at::scaled_dot_product_attention(q_BHND, k_BHMD, v_BHMD);
}

// Uses the same rule as the choice itself.
std::string attention_form(c10::Device device, at::ScalarType dtype, bool dropout) {
  const char* const aten = dropout ? "tiles of aten" : "aten";
  if (!device.is_cpu()) return aten;
  const at::Tensor one = at::zeros({1, 1, 1, 8}, dtype);
  return attention_cpu_supports(one, one, one) ? "welkin" : aten;
}

at::Tensor attention(const at::Tensor& q_BHND, const at::Tensor& k_BHMD, const at::Tensor& v_BHMD) {
  const at::Tensor q = cast_operand(q_BHND, OperatorClass::Matmul);
  const at::Tensor k = cast_operand(k_BHMD, OperatorClass::Matmul);
  const at::Tensor v = cast_operand(v_BHMD, OperatorClass::Matmul);
  if (!attention_cpu_supports(q, k, v)) return attention_reference(q, k, v);
  return CpuAttention::apply(q, k, v, WeightMask{});
}

at::Tensor attention_with_dropout(const at::Tensor& q_BHND, const at::Tensor& k_BHMD, const at::Tensor& v_BHMD, double rate,
                                  const MaskKey& key, const MaskWindow& window) {
  if (rate == 0.0) return attention(q_BHND, k_BHMD, v_BHMD);
  const at::Tensor q = cast_operand(q_BHND, OperatorClass::Matmul);
  const at::Tensor k = cast_operand(k_BHMD, OperatorClass::Matmul);
  const at::Tensor v = cast_operand(v_BHMD, OperatorClass::Matmul);
  if (!attention_cpu_supports(q, k, v)) return attention_in_tiles(q, k, v, rate, key, window);
  return CpuAttention::apply(q, k, v, WeightMask{rate, key, window});
}

}  // namespace welkin::ops
