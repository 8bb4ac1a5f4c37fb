// SPDX-License-Identifier: Apache-2.0
// Attention over tokens that are split over a group, in three ways. q, k, v (B, H, own tokens, D) -> (B, H, own tokens, D), as
// for unsplit tokens. `lengths`: each member's tokens.
#pragma once

#include <ATen/core/Tensor.h>

#include "model/base/site.h"
#include "parallel/comm/collectives.h"
#include "parallel/tokens/token_blocks.h"

namespace welkin::parallel {

enum class ContextMode {
  AllGather,  // every member gets all keys and values (DL4SCI25): one exchange, memory for all keys
  Ring,       // keys and values go round, the softmax is accumulated: memory for one block, P - 1 small messages
  AllToAll,   // heads are split instead of tokens (Ulysses): least traffic, heads must divide
};

const char* context_mode_name(ContextMode mode);

// `body` is the model's own attention on {q, k, v}; the ring replaces it.
model::Tensors all_gather_attention(const Group& group, const Lengths& lengths, const model::Tensors& qkv,
                                    const model::Body& body);
// `blocks`: of the members' tokens, or null. Masks of dropout are of tokens in the rows of the field, in which they are then put.
model::Tensors all_to_all_attention(const Group& group, const Lengths& lengths, const model::Tensors& qkv,
                                    const model::Body& body, const TokenBlocks* blocks = nullptr);
at::Tensor ring_attention(const Group& group, const Lengths& lengths, const at::Tensor& q_BHND, const at::Tensor& k_BHND,
                          const at::Tensor& v_BHND);

}  // namespace welkin::parallel
