// SPDX-License-Identifier: Apache-2.0
// The blocks of work that tiled attention on a CPU consists of, as plain pointers, and a table of functions per instruction set;
// torch-free. The scheme is that of FlashAttention (Dao et al. 2022, algorithms 1 and 4): weights exist for one tile at a time.
// Operands are of type T, float or bfloat16; sums, powers and results are float32. Logits are `scale` times the product of query
// and key, to base two, so that weights are powers of two.
#pragma once

#include <cstdint>

#include "ops/cpu/bf16.h"
#include "ops/instruction_set.h"
#include "ops/philox_mask.h"

namespace welkin::ops {

inline constexpr int64_t kQueryBlock = 48;   // queries of one tile: a multiple of every kernel's rows
inline constexpr int64_t kKeyBlock = 192;    // keys of one tile
inline constexpr int64_t kDimMultiple = 16;  // packed head dims are padded to this

// Packed keys are padded to a multiple of this: of a panel, and of the rows of every tile that the head dim leads to (lanes.h:
// tile_rows; three vectors have rows that divide a panel).
constexpr int64_t key_multiple(int64_t panel_keys, int64_t padded_dim) {
  return padded_dim % (3 * panel_keys / 2) == 0 ? panel_keys : 96;
}

// Floats of scratch that a call needs, aligned to 64 bytes: two tiles, and three of bfloat16.
inline constexpr int64_t kAttentionScratch = 2 * kQueryBlock * kKeyBlock + 3 * kQueryBlock * kKeyBlock / 2;

// One head. Rows are packed: `padded_dim` numbers each, zero behind head_dim and behind the last. "Steps" are rows as the right
// side of a product reads them: the rows themselves, or pairs of rows of bfloat16 interleaved. Panels hold `panel_keys` keys each
// as [head_dim][panel_keys], of bfloat16 as [head_dim / 2][panel_keys][2].
template <typename T>
struct PackedKeys {
  const T* key_steps = nullptr;  // backward only
  const T* key_panels = nullptr;
  const T* value_steps = nullptr;   // forward only
  const T* value_panels = nullptr;  // backward only
  int64_t num_keys = 0;
  int64_t panel_dim = 0;  // head_dim, made even for bfloat16
  int64_t padded_dim = 0;
  int64_t multiple = 0;  // key_multiple()
};

// Dropout on the weights of a head: element first + row * row_stride + key of the sample of `counter` decides about query `row`
// and `key`. None where the rule's threshold is 0.
struct WeightDropout {
  MaskRule rule;
  uint64_t counter = 0;
  uint64_t first = 0;  // of query 0 and key 0 of the call
  uint64_t row_stride = 0;
};

// kQueryBlock queries of a head against all its keys.
template <typename T>
struct AttentionForward {
  PackedKeys<T> keys;
  float scale = 1;
  const T* query = nullptr;   // packed rows
  float* out = nullptr;       // packed rows, written
  float* log2_sum = nullptr;  // kQueryBlock: log2 of the sum of 2^logit, written
  WeightDropout dropout;
};

// Keys [key_begin, key_end) of a head against all its queries; key_begin is a multiple of kKeyBlock.
template <typename T>
struct AttentionBackward {
  PackedKeys<T> keys;
  float scale = 1;
  int64_t key_begin = 0;
  int64_t key_end = 0;
  int64_t padded_queries = 0;      // a multiple of kQueryBlock
  const T* query = nullptr;        // packed rows
  const T* query_steps = nullptr;  // the same as steps
  const T* grad_out = nullptr;     // packed rows
  const T* grad_out_steps = nullptr;
  const float* log2_sum = nullptr;      // per query
  const float* out_dot_grad = nullptr;  // per query: sum over the head dim of out * grad_out (with dropout, too, it is the sum
                                        // over the keys of weight times its gradient)
  float* grad_query = nullptr;          // packed rows, added to: the logits' gradient times the keys
  float* grad_key = nullptr;            // packed rows from key 0 on, this range written: the logits' gradient times `query`
  float* grad_value = nullptr;          // packed rows from key 0 on, this range written
  WeightDropout dropout;
};

template <typename T>
struct AttentionKernel {
  int64_t panel_keys;
  void (*forward)(const AttentionForward<T>& work, float* scratch);
  void (*backward)(const AttentionBackward<T>& work, float* scratch);
};

const AttentionKernel<float>& attention_kernel_portable();
const AttentionKernel<float>& attention_kernel_avx2();       // x86-64 only
const AttentionKernel<float>& attention_kernel_avx512();     // x86-64 only
const AttentionKernel<Bf16>& attention_kernel_avx512bf16();  // x86-64 only

// The table of a set; none (null) for bfloat16 without fast dot products of it.
template <typename T>
const AttentionKernel<T>* attention_kernel(InstructionSet set);
template <>
const AttentionKernel<float>* attention_kernel<float>(InstructionSet set);
template <>
const AttentionKernel<Bf16>* attention_kernel<Bf16>(InstructionSet set);

}  // namespace welkin::ops
