// SPDX-License-Identifier: Apache-2.0
// Attention over a block of keys, with the values needed to merge blocks: softmax(q k^T / sqrt(head_dim)) v and the logarithm
// of its denominator. Shapes: q, out (B, H, N, D); k, v (B, H, M, D); lse (B, H, N), float32 or float64.
// Source: Dao et al., arXiv:2205.14135; Liu et al. (ring attention), arXiv:2310.01889.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/random/philox_dropout.h"

namespace welkin::ops {

struct AttentionBlock {
  at::Tensor out, lse;
};

struct AttentionBlockGradient {
  at::Tensor q, k, v;
};

// Aten's flash kernel on a CPU, its plain operators elsewhere. Not differentiable.
AttentionBlock attention_block(const at::Tensor& q_BHND, const at::Tensor& k_BHMD, const at::Tensor& v_BHMD);

// The block's part of the gradients; `whole` is the result over all blocks.
AttentionBlockGradient attention_block_gradient(const at::Tensor& grad_out, const at::Tensor& q_BHND, const at::Tensor& k_BHMD,
                                                const at::Tensor& v_BHMD, const AttentionBlock& whole);

// Dropout on the block's weights: the part of the mask (heads, queries, keys) in `window`. The denominator includes all
// weights, so blocks are merged as without dropout. Made for some queries at a time, so that memory grows with the tokens.
struct BlockDropout {
  double rate = 0;
  MaskKey key;
  MaskWindow window;  // of (B, H, N, M)
};
AttentionBlock attention_block(const at::Tensor& q_BHND, const at::Tensor& k_BHMD, const at::Tensor& v_BHMD,
                               const BlockDropout& dropout);
AttentionBlockGradient attention_block_gradient(const at::Tensor& grad_out, const at::Tensor& q_BHND, const at::Tensor& k_BHMD,
                                                const at::Tensor& v_BHMD, const AttentionBlock& whole,
                                                const BlockDropout& dropout);

// The result over the keys of both. Its `out` is float32 or float64.
AttentionBlock merge_attention_blocks(const AttentionBlock& a, const AttentionBlock& b);

namespace reference {  // plain operators, on every device; the reference for the kernels

AttentionBlock attention_block(const at::Tensor& q_BHND, const at::Tensor& k_BHMD, const at::Tensor& v_BHMD);
AttentionBlockGradient attention_block_gradient(const at::Tensor& grad_out, const at::Tensor& q_BHND, const at::Tensor& k_BHMD,
                                                const at::Tensor& v_BHMD, const AttentionBlock& whole);

}  // namespace reference
}  // namespace welkin::ops
