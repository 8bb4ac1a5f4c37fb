// SPDX-License-Identifier: Apache-2.0
// Attention on a CPU by our own tiled kernels (ops/cpu/). At the head dims of weather models (48) aten's flash form reaches a
// third of the machine's rate; ours multiplies packed tiles at the rate of a large matmul. It computes in float32, or, for
// bfloat16 on a CPU that is fast with it, in bfloat16 matmuls with float32 softmax and sums. Results do not depend on the
// number of threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

#include "ops/random/philox_dropout.h"

namespace welkin::ops {

// True for float32, bfloat16 or float16 on a CPU, each (B, H, N, head_dim), non-empty, with keys and values of one length.
bool attention_cpu_supports(const at::Tensor& q_BHND, const at::Tensor& k_BHMD, const at::Tensor& v_BHMD);

// Dropout on the weights, as in attention_with_dropout(); none at rate 0. `window` is empty or of heads, queries and keys.
struct WeightMask {
  double rate = 0;
  MaskKey key;
  MaskWindow window;
};

// -> out (B, H, N, head_dim) in q's dtype, whose memory is (B, N, H, head_dim), so that joining the heads copies nothing; and
// log2_sum (B, H, N) float32: log2 of each query's sum of 2^(log2(e) q k / sqrt(head_dim)).
// If operands of float32 matmuls are rounded (ops/gemm/gemm_provider.h), so are those of attention.
std::tuple<at::Tensor, at::Tensor> attention_cpu_forward(const at::Tensor& q_BHND, const at::Tensor& k_BHMD,
                                                         const at::Tensor& v_BHMD, const WeightMask& mask = {});

// Gradients of q, k and v, in their dtypes, with the memory order of `out`. The mask is recomputed.
std::tuple<at::Tensor, at::Tensor, at::Tensor> attention_cpu_backward(const at::Tensor& grad_BHND, const at::Tensor& q_BHND,
                                                                      const at::Tensor& k_BHMD, const at::Tensor& v_BHMD,
                                                                      const at::Tensor& out_BHND, const at::Tensor& log2_sum_BHN,
                                                                      const WeightMask& mask = {});

}  // namespace welkin::ops
