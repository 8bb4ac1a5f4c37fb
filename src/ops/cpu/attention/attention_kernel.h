// SPDX-License-Identifier: Apache-2.0
// The blocks of work of tiled attention on a CPU, as plain pointers, and a table of functions per instruction set;
// torch-free. The scheme is that of FlashAttention (Dao et al. 2022, algorithms 1 and 4): weights exist for one tile at a time.
// Operands have type T, float or bfloat16; sums, powers and results are float32. Logits are `scale` times the matmul of query
// and key, in base two, so that weights are powers of two.
#pragma once

#include <cstdint>
#include <limits>

#include "ops/arithmetic/philox_mask.h"
#include "ops/base/instruction_set.h"
#include "ops/cpu/lanes/bf16.h"

namespace welkin::ops {

inline constexpr int64_t kDimMultiple = 16;  // packed head dims are padded to this

// The initial largest logit. Not minus infinity, to which a matmul may overflow: the difference would be NaN.
inline constexpr float kNoLogit = std::numeric_limits<float>::lowest();

// One head. Rows are packed, zero behind head_dim and behind the last: `padded_dim` numbers each, and `row_dim` on the left
// side of a matmul that sums over the head dim. "Steps" are rows as the right side of a matmul: unchanged, or interleaved pairs
// of rows of bfloat16. Panels hold `panel_rows` rows each as [panel_dim][panel_rows], of bfloat16 as [panel_dim
// / 2][panel_rows][2].
// Operands in two bfloat16 parts (a large one, and a small one: the rounding error; see ops/gemm/gemm_provider.h): there are
// two sets of steps, and rows and panels have three times the head dim: large, large, small in rows and large, small, large in
// panels, so that one long matmul is the sum of three. Only kernels with `takes_two_parts` have them.
template <typename T>
struct PackedKeys {
  const T* key_steps = nullptr;          // backward only
  const T* key_steps_small = nullptr;    // second of two parts
  const T* key_panels = nullptr;         // rows if AttentionKernel::keys_on_the_left
  const T* value_steps = nullptr;        // forward only
  const T* value_steps_small = nullptr;  // second of two parts
  const T* value_panels = nullptr;       // backward only; rows like those of keys
  int64_t num_keys = 0;
  int64_t panel_dim = 0;
  int64_t row_dim = 0;
  int64_t padded_dim = 0;
  int64_t multiple = 0;  // key_multiple()
};

// Dropout on the weights of a head: element first + row * row_stride + key of sample `counter` belongs to query `row`
// and `key`. None if the rule's threshold is 0.
struct WeightDropout {
  MaskRule rule;
  uint64_t counter = 0;
  uint64_t first = 0;  // for query 0 and key 0 of the call
  uint64_t row_stride = 0;
};

// Attention of AttentionKernel::query_block queries of a head to all its keys.
template <typename T>
struct AttentionForward {
  PackedKeys<T> keys;
  float scale = 1;
  const T* query = nullptr;   // packed rows
  float* out = nullptr;       // packed rows, written
  float* log2_sum = nullptr;  // per query: log2 of the sum of 2^logit, written
  WeightDropout dropout;
};

// The backward pass for keys [key_begin, key_end) of a head and all queries; key_begin divides by AttentionKernel::key_block.
template <typename T>
struct AttentionBackward {
  PackedKeys<T> keys;
  float scale = 1;
  int64_t key_begin = 0;
  int64_t key_end = 0;
  int64_t padded_queries = 0;      // a multiple of AttentionKernel::query_block
  const T* query = nullptr;        // packed rows; panels if AttentionKernel::keys_on_the_left
  const T* query_steps = nullptr;  // the same as steps
  const T* query_steps_small = nullptr;
  const T* grad_out = nullptr;  // like `query`
  const T* grad_out_steps = nullptr;
  const T* grad_out_steps_small = nullptr;
  const float* log2_sum = nullptr;      // per query
  const float* out_dot_grad = nullptr;  // per query: sum over the head dim of out * grad_out (also with dropout equal to
                                        // the sum over the keys of weight times its gradient)
  float* grad_query = nullptr;          // packed rows, written: the logits' gradient times the keys
  float* grad_key = nullptr;            // packed rows from key 0 on, this range written: the logits' gradient times `query`
  float* grad_value = nullptr;          // packed rows from key 0 on, this range written
  WeightDropout dropout;
};

template <typename T>
struct AttentionKernel {
  int64_t panel_rows;
  int64_t tile_multiple;   // of packed keys: of the rows of every tile for this head dim
  int64_t query_block;     // packed queries are padded to this
  int64_t key_block;       // of tiles, backward
  int64_t depth_multiple;  // panel_dim and row_dim are padded to this
  int64_t pair_distance;   // distance of the rows of a pair in steps: rows i and i + distance of every 2 * distance rows
  bool keys_on_the_left;   // backward: rows of keys and values are multiplied by panels of queries and gradients; else reversed
  bool takes_two_parts;
  int64_t (*scratch)(int64_t padded_dim);  // floats of scratch memory for a call, aligned to 64 bytes
  void (*forward)(const AttentionForward<T>& work, float* scratch);
  void (*backward)(const AttentionBackward<T>& work, float* scratch);
};

// Packed keys are padded to a multiple of this: of a panel, whose rows are a multiple of tiles of three vectors (lanes.h:
// tile_rows), and of the rows of other tiles.
template <typename T>
constexpr int64_t key_multiple(const AttentionKernel<T>& kernel, int64_t padded_dim) {
  return padded_dim % (3 * kernel.panel_rows / 2) == 0 ? kernel.panel_rows : kernel.tile_multiple;
}

const AttentionKernel<float>& attention_kernel_portable();
const AttentionKernel<float>& attention_kernel_avx2();       // x86-64 only
const AttentionKernel<float>& attention_kernel_avx512();     // x86-64 only
const AttentionKernel<Bf16>& attention_kernel_avx512bf16();  // x86-64 only
const AttentionKernel<Bf16>& attention_kernel_amx();         // x86-64 only

// The table of a set; null for bfloat16 without fast dot products.
template <typename T>
const AttentionKernel<T>* attention_kernel(InstructionSet set);
template <>
const AttentionKernel<float>* attention_kernel<float>(InstructionSet set);
template <>
const AttentionKernel<Bf16>* attention_kernel<Bf16>(InstructionSet set);

}  // namespace welkin::ops
