// SPDX-License-Identifier: Apache-2.0
// Attention on a CPU by our own tiled kernels (ops/cpu/). Aten's flash form reaches a third of the machine's rate at the head
// dims of the weather models (48); ours multiplies packed tiles at the rate of a large matmul. Float32 inside, or
// matmuls of bfloat16 with float32 softmax and sums where that comes in and the CPU is fast with it; results do not depend on
// the number of threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

#include "ops/random/philox_dropout.h"

namespace welkin::ops {

// float32, bfloat16 or float16 on a CPU, (B, H, N, head_dim) each with keys and values of one length, none of them empty.
bool attention_cpu_supports(const at::Tensor& q_BHND, const at::Tensor& k_BHMD, const at::Tensor& v_BHMD);

// Dropout on the weights, as of attention_with_dropout(); none at rate 0. `window` is empty or of heads, queries and keys.
struct WeightMask {
  double rate = 0;
  MaskKey key;
  MaskWindow window;
};

// -> out (B, H, N, head_dim) in q's dtype, whose memory is (B, N, H, head_dim), so that joining the heads copies nothing; and
// log2_sum (B, H, N) float32: log2 of each query's sum of 2^(log2(e) q k / sqrt(head_dim)).
// Where operands of float32 matmuls are rounded (ops/gemm/gemm_provider.h), those of attention are.
std::tuple<at::Tensor, at::Tensor> attention_cpu_forward(const at::Tensor& q_BHND, const at::Tensor& k_BHMD,
                                                         const at::Tensor& v_BHMD, const WeightMask& mask = {});

// Gradients by q, k and v, in their dtypes, memory as of `out`. The mask is made again.
std::tuple<at::Tensor, at::Tensor, at::Tensor> attention_cpu_backward(const at::Tensor& grad_BHND, const at::Tensor& q_BHND,
                                                                      const at::Tensor& k_BHMD, const at::Tensor& v_BHMD,
                                                                      const at::Tensor& out_BHND, const at::Tensor& log2_sum_BHN,
                                                                      const WeightMask& mask = {});

}  // namespace welkin::ops
