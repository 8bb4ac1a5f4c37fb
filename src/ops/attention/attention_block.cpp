// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_block.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace welkin::ops {
namespace {

double logit_scale(const at::Tensor& q) { return 1.0 / std::sqrt(static_cast<double>(q.size(-1))); }

at::Tensor wide_form(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat); }

// Aten's kernels read the elements of a row as neighbours, whatever its strides say.
at::Tensor with_neighbours_in_rows(const at::Tensor& x) { return x.stride(-1) == 1 ? x : x.contiguous(); }

at::Tensor logits_of(const at::Tensor& q, const at::Tensor& k) {
  return at::matmul(wide_form(q).mul(logit_scale(q)), wide_form(k).transpose(-2, -1));
}

constexpr int64_t kQueriesAtOnce = 128;
constexpr int64_t kQueryDim = 2;

// The part of a mask for some of the block's queries.
BlockDropout of_queries(const BlockDropout& dropout, int64_t first, const at::Tensor& q, const at::Tensor& k) {
  BlockDropout some = dropout;
  if (some.window.offset.empty()) some.window = {{q.size(1), q.size(kQueryDim), k.size(kQueryDim)}, {0, 0, 0}};
  some.window.offset[1] += first;
  return some;
}

at::Tensor dropped(const at::Tensor& weights, const BlockDropout& dropout) {
  return philox_dropout(weights, dropout.rate, dropout.key, dropout.window);
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
  auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(
      with_neighbours_in_rows(q_BHND), with_neighbours_in_rows(k_BHMD), with_neighbours_in_rows(v_BHMD));
  return {out, lse};
}

AttentionBlockGradient attention_block_gradient(const at::Tensor& grad_out, const at::Tensor& q_BHND, const at::Tensor& k_BHMD,
                                                const at::Tensor& v_BHMD, const AttentionBlock& whole) {
  if (!q_BHND.is_cpu()) return reference::attention_block_gradient(grad_out, q_BHND, k_BHMD, v_BHMD, whole);
  auto [grad_q, grad_k, grad_v] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      with_neighbours_in_rows(grad_out), with_neighbours_in_rows(q_BHND), with_neighbours_in_rows(k_BHMD),
      with_neighbours_in_rows(v_BHMD), with_neighbours_in_rows(whole.out), whole.lse, /*dropout_p=*/0.0, /*is_causal=*/false);
  return {grad_q, grad_k, grad_v};
}

AttentionBlock attention_block(const at::Tensor& q_BHND, const at::Tensor& k_BHMD, const at::Tensor& v_BHMD,
                               const BlockDropout& dropout) {
  const at::Tensor v = wide_form(v_BHMD);
  std::vector<at::Tensor> outs, lses;
  for (int64_t first = 0; first < q_BHND.size(kQueryDim); first += kQueriesAtOnce) {
    const at::Tensor q = q_BHND.narrow(kQueryDim, first, std::min(kQueriesAtOnce, q_BHND.size(kQueryDim) - first));
    const at::Tensor logits = logits_of(q, k_BHMD);
    lses.push_back(at::logsumexp(logits, -1));
    const at::Tensor weights = at::exp(logits - lses.back().unsqueeze(-1));
    outs.push_back(at::matmul(dropped(weights, of_queries(dropout, first, q_BHND, k_BHMD)), v));
  }
  return {at::cat(outs, kQueryDim), at::cat(lses, kQueryDim)};
}

// A dropped weight passes no gradient. The sum over a row of weight times gradient still equals that of out times gradient.
AttentionBlockGradient attention_block_gradient(const at::Tensor& grad_out, const at::Tensor& q_BHND, const at::Tensor& k_BHMD,
                                                const at::Tensor& v_BHMD, const AttentionBlock& whole,
                                                const BlockDropout& dropout) {
  const at::Tensor k = wide_form(k_BHMD);
  const at::Tensor v = wide_form(v_BHMD);
  std::vector<at::Tensor> grads_q;
  at::Tensor grad_k, grad_v;
  const auto add = [](at::Tensor& sum, const at::Tensor& part) { sum = sum.defined() ? sum.add_(part) : part; };
  for (int64_t first = 0; first < q_BHND.size(kQueryDim); first += kQueriesAtOnce) {
    const int64_t count = std::min(kQueriesAtOnce, q_BHND.size(kQueryDim) - first);
    const auto some = [&](const at::Tensor& x) { return x.narrow(kQueryDim, first, count); };
    const BlockDropout mask = of_queries(dropout, first, q_BHND, k_BHMD);
    const at::Tensor weights = at::exp(logits_of(some(q_BHND), k_BHMD) - some(whole.lse).unsqueeze(-1));
    const at::Tensor grad = wide_form(some(grad_out));
    const at::Tensor row_sum = (grad * wide_form(some(whole.out))).sum(-1, /*keepdim=*/true);
    const at::Tensor grad_weights = dropped(at::matmul(grad, v.transpose(-2, -1)), mask);
    const at::Tensor grad_logits = weights * (grad_weights - row_sum) * logit_scale(q_BHND);
    grads_q.push_back(at::matmul(grad_logits, k));
    add(grad_k, at::matmul(grad_logits.transpose(-2, -1), wide_form(some(q_BHND))));
    add(grad_v, at::matmul(dropped(weights, mask).transpose(-2, -1), grad));
  }
  return {at::cat(grads_q, kQueryDim).to(q_BHND.scalar_type()), grad_k.to(k_BHMD.scalar_type()), grad_v.to(v_BHMD.scalar_type())};
}

AttentionBlock merge_attention_blocks(const AttentionBlock& a, const AttentionBlock& b) {
  const at::Tensor lse = at::logaddexp(a.lse, b.lse);
  const at::Tensor share_a = at::exp(a.lse - lse).unsqueeze(-1);
  const at::Tensor share_b = at::exp(b.lse - lse).unsqueeze(-1);
  return {wide_form(a.out) * share_a + wide_form(b.out) * share_b, lse};
}

}  // namespace welkin::ops
