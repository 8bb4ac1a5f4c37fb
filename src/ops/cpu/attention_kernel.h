// SPDX-License-Identifier: Apache-2.0
// The blocks of work that tiled attention on a CPU consists of, as plain pointers, and a table of functions per instruction set;
// torch-free. The scheme is that of FlashAttention (Dao et al. 2022, algorithms 1 and 4): weights exist for one tile at a time.
// Everything is float32. Queries come scaled by log2(e) / sqrt(head_dim), so that weights are powers of two.
#pragma once

#include <cstdint>

#include "ops/instruction_set.h"

namespace welkin::ops {

inline constexpr int64_t kQueryBlock = 48;   // queries of one tile: a multiple of every kernel's rows
inline constexpr int64_t kKeyBlock = 192;    // keys of one tile
inline constexpr int64_t kKeyMultiple = 96;  // packed keys are padded to this
inline constexpr int64_t kDimMultiple = 16;  // packed head dims are padded to this

// Floats of scratch that a call needs, aligned to 64 bytes.
inline constexpr int64_t kAttentionScratch = 2 * kQueryBlock * kKeyBlock;

// One head. Rows are packed: `padded_dim` floats each, zero behind head_dim and behind the last key. Panels hold `panel_keys`
// keys each as [head_dim][panel_keys].
struct PackedKeys {
  const float* key_rows = nullptr;  // backward only
  const float* key_panels = nullptr;
  const float* value_rows = nullptr;    // forward only
  const float* value_panels = nullptr;  // backward only
  int64_t num_keys = 0;
  int64_t head_dim = 0;
  int64_t padded_dim = 0;
};

// kQueryBlock queries of a head against all its keys.
struct AttentionForward {
  PackedKeys keys;
  const float* query = nullptr;  // packed rows, scaled
  float* out = nullptr;          // packed rows, written
  float* log2_sum = nullptr;     // kQueryBlock: log2 of the sum of 2^logit, written
};

// Keys [key_begin, key_end) of a head against all its queries; key_begin is a multiple of kKeyBlock.
struct AttentionBackward {
  PackedKeys keys;
  int64_t key_begin = 0;
  int64_t key_end = 0;
  int64_t padded_queries = 0;           // a multiple of kQueryBlock
  const float* query = nullptr;         // packed rows, scaled
  const float* grad_out = nullptr;      // packed rows
  const float* log2_sum = nullptr;      // per query
  const float* out_dot_grad = nullptr;  // per query: sum over the head dim of out * grad_out
  float* grad_query = nullptr;          // packed rows, added to: gradient by the query before scaling, over 1/sqrt(head_dim)
  float* grad_key = nullptr;            // packed rows from key 0 on, this range written: gradient by the key, over ln 2
  float* grad_value = nullptr;          // packed rows from key 0 on, this range written
};

struct AttentionKernel {
  int64_t panel_keys;
  void (*forward)(const AttentionForward& work, float* scratch);
  void (*backward)(const AttentionBackward& work, float* scratch);
};

const AttentionKernel& attention_kernel_portable();
const AttentionKernel& attention_kernel_avx2();    // x86-64 only
const AttentionKernel& attention_kernel_avx512();  // x86-64 only

const AttentionKernel& attention_kernel(InstructionSet set);

}  // namespace welkin::ops
