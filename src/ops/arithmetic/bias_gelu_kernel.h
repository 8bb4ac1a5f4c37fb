// SPDX-License-Identifier: Apache-2.0
// Arguments of gelu(x + bias), forward and backward; torch-free. GELU is the exact one, in float32. Matrices are (rows, width),
// without gaps. The backward pass also recomputes gelu(x + bias), for the weight gradient of the next matmul, while it has x
// in registers. The bias gradient is summed by chunks of rows, then over the chunks, so that its bits are reproducible.
#pragma once

#include <cstdint>

#include "ops/arithmetic/row_chunks.h"

namespace welkin::ops {

inline constexpr int64_t kGeluChunk = 128;   // rows whose bias gradient one block sums
inline constexpr int64_t kGeluChunks = 256;  // at most; chunks of more rows get longer

// Low is the type of activations: float, half or bfloat16. Operand is that of a matmul's operands and result: float where a
// processor widens bfloat16 for a matmul, then with values rounded to Low.
template <typename Low, typename Operand = Low>
struct GeluForward {
  int64_t rows = 0, width = 0;
  const Low* x = nullptr;
  const float* bias = nullptr;  // (width)
  Operand* out = nullptr;
};

template <typename Low, typename Operand = Low>
struct GeluBackward {
  int64_t rows = 0, width = 0;
  const Operand* grad_out = nullptr;  // the gradient of the result; as a float not yet rounded to Low
  const Low* x = nullptr;
  const float* bias = nullptr;
  Operand* out = nullptr;  // the recomputed result
  Low* grad_x = nullptr;
};

// Rows of a chunk, and number of chunks.
constexpr int64_t gelu_chunk(int64_t rows) { return chunk_length(rows, kGeluChunk, kGeluChunks); }
constexpr int64_t gelu_chunks(int64_t rows) { return chunk_count(rows, gelu_chunk(rows)); }

}  // namespace welkin::ops
