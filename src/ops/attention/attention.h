// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention without mask: softmax(q k^T / sqrt(head_dim)) v over (batch, heads, tokens, head_dim).
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <string>

#include "ops/random/philox_dropout.h"

namespace welkin::ops {

// Uses our own tiled form on a CPU (ops/attention/attention_cpu.h), aten's flash forms on a GPU, and aten's plain form in
// double. Our own form is differentiable once.
at::Tensor attention(const at::Tensor& q_BHND, const at::Tensor& k_BHMD, const at::Tensor& v_BHMD);

// Name of the implementation for this device and dtype, for logs: welkin (ops/attention/attention_cpu.h), aten, or tiles of
// aten. With dropout on the weights it is that of attention_with_dropout().
std::string attention_form(c10::Device device, at::ScalarType dtype, bool dropout);

// Aten's form on every device: the reference for ours.
at::Tensor attention_reference(const at::Tensor& q_BHND, const at::Tensor& k_BHMD, const at::Tensor& v_BHMD);

// With dropout on the attention weights, whose mask is keyed by (sample, head, query, key). On a CPU within the tiles of our
// form, elsewhere by ops/attention/attention_tiles_aten.h. `window` places the local weights in the global (heads, queries,
// keys). Differentiable once.
at::Tensor attention_with_dropout(const at::Tensor& q_BHND, const at::Tensor& k_BHMD, const at::Tensor& v_BHMD, double rate,
                                  const MaskKey& key, const MaskWindow& window = {});

}  // namespace welkin::ops
