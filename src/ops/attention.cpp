// SPDX-License-Identifier: Apache-2.0
// Both forms of attention, in aten.
#include "ops/attention.h"

#include <ATen/ops/matmul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>

#include <cmath>

#include "ops/autocast.h"

namespace welkin::ops {

at::Tensor attention(const at::Tensor& q_BHND, const at::Tensor& k_BHMD, const at::Tensor& v_BHMD) {
  return at::scaled_dot_product_attention(q_BHND, k_BHMD, v_BHMD);
}

at::Tensor attention_with_dropout(const at::Tensor& q_BHND, const at::Tensor& k_BHMD, const at::Tensor& v_BHMD, double rate,
                                  const MaskKey& key, const MaskWindow& window) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(q_BHND.size(-1)));
  const at::Tensor logits = at::matmul(q_BHND.mul(scale), k_BHMD.transpose(-2, -1));
  const at::Tensor weights = at::softmax(cast_operand(logits, OperatorClass::Reduction), -1);
  return at::matmul(philox_dropout(weights, rate, key, window), v_BHMD);
}

}  // namespace welkin::ops
