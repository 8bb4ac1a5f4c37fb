// SPDX-License-Identifier: Apache-2.0
// Ring attention with dropout on the attention weights: masks are made block by block, as the blocks of keys arrive, and equal
// those of the whole (heads, queries, keys).
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/random/philox_dropout.h"
#include "parallel/comm/collectives.h"

namespace welkin::parallel {

struct RingDropout {
  double rate = 0;
  ops::MaskKey key;
  ops::MaskWindow queries;  // own heads and queries against all keys: (heads, tokens, tokens)
};

// Like ring_attention() of context_attention.h; rate 0: without dropout.
at::Tensor ring_attention(const Group& group, const Lengths& lengths, const at::Tensor& q_BHND, const at::Tensor& k_BHND,
                          const at::Tensor& v_BHND, const RingDropout& dropout);

}  // namespace welkin::parallel
