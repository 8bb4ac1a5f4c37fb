// SPDX-License-Identifier: Apache-2.0
#include "ops/attention_block.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>

#include <cmath>

namespace welkin::ops {
namespace {

double logit_scale(const at::Tensor& q) { return 1.0 / std::sqrt(static_cast<double>(q.size(-1))); }

at::Tensor wide_form(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat); }

at::Tensor logits_of(const at::Tensor& q, const at::Tensor& k) {
  return at::matmul(wide_form(q).mul(logit_scale(q)), wide_form(k).transpose(-2, -1));
}

}  // namespace

namespace reference {

AttentionBlock attention_block(const at::Tensor& q_BHND, const at::Tensor& k_BHMD, const at::Tensor& v_BHMD) {
  const at::Tensor logits = logits_of(q_BHND, k_BHMD);
  const at::Tensor lse = at::logsumexp(logits, -1);
  const at::Tensor weights = at::exp(logits - lse.unsqueeze(-1));
  return {at::matmul(weights, wide_form(v_BHMD)).to(q_BHND.scalar_type()), lse};
}

AttentionBlockGradient attention_block_gradient(const at::Tensor& grad_out, const at::Tensor& q_BHND, const at::Tensor& k_BHMD,
                                                const at::Tensor& v_BHMD, const AttentionBlock& whole) {
  const at::Tensor weights = at::exp(logits_of(q_BHND, k_BHMD) - whole.lse.unsqueeze(-1));
  const at::Tensor grad = wide_form(grad_out);
  const at::Tensor grad_weights = at::matmul(grad, wide_form(v_BHMD).transpose(-2, -1));
  const at::Tensor row_sum = (grad * wide_form(whole.out)).sum(-1, /*keepdim=*/true);
  const at::Tensor grad_logits = weights * (grad_weights - row_sum) * logit_scale(q_BHND);
  return {at::matmul(grad_logits, wide_form(k_BHMD)).to(q_BHND.scalar_type()),
          at::matmul(grad_logits.transpose(-2, -1), wide_form(q_BHND)).to(k_BHMD.scalar_type()),
          at::matmul(weights.transpose(-2, -1), grad).to(v_BHMD.scalar_type())};
}

}  // namespace reference

AttentionBlock attention_block(const at::Tensor& q_BHND, const at::Tensor& k_BHMD, const at::Tensor& v_BHMD) {
  if (!q_BHND.is_cpu()) return reference::attention_block(q_BHND, k_BHMD, v_BHMD);
  auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(q_BHND, k_BHMD, v_BHMD);
  return {out, lse};
}

AttentionBlockGradient attention_block_gradient(const at::Tensor& grad_out, const at::Tensor& q_BHND, const at::Tensor& k_BHMD,
                                                const at::Tensor& v_BHMD, const AttentionBlock& whole) {
  if (!q_BHND.is_cpu()) return reference::attention_block_gradient(grad_out, q_BHND, k_BHMD, v_BHMD, whole);
  auto [grad_q, grad_k, grad_v] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      grad_out, q_BHND, k_BHMD, v_BHMD, whole.out, whole.lse, /*dropout_p=*/0.0, /*is_causal=*/false);
  return {grad_q, grad_k, grad_v};
}

AttentionBlock merge_attention_blocks(const AttentionBlock& a, const AttentionBlock& b) {
  const at::Tensor lse = at::logaddexp(a.lse, b.lse);
  const at::Tensor share_a = at::exp(a.lse - lse).unsqueeze(-1);
  const at::Tensor share_b = at::exp(b.lse - lse).unsqueeze(-1);
  return {wide_form(a.out) * share_a + wide_form(b.out) * share_b, lse};
}

}  // namespace welkin::ops
