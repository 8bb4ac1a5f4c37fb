// SPDX-License-Identifier: Apache-2.0
// What gelu(x + bias) works on, forward and backward; torch-free. GELU is the exact one, in float32. Matrices are (rows, width),
// without gaps. The backward pass makes gelu(x + bias) again, for the weight's gradient of the matmul after it, while it has x
// in hand; the gradient of the bias is summed by chunks of rows, then the chunks are, so that its bits are the same every time.
#pragma once

#include <cstdint>

#include "ops/arithmetic/row_chunks.h"

namespace welkin::ops {

inline constexpr int64_t kGeluChunk = 128;   // rows of which a block sums the gradient of the bias
inline constexpr int64_t kGeluChunks = 256;  // at most; longer ones beyond

// Low is the type of activations: float, half or bfloat16.
template <typename Low>
struct GeluForward {
  int64_t rows = 0, width = 0;
  const Low* x = nullptr;
  const float* bias = nullptr;  // (width)
  Low* out = nullptr;
};

template <typename Low>
struct GeluBackward {
  int64_t rows = 0, width = 0;
  const Low* grad_out = nullptr;  // the gradient of the result
  const Low* x = nullptr;
  const float* bias = nullptr;
  Low* out = nullptr;  // the result again
  Low* grad_x = nullptr;
};

// Rows of a chunk, and how many there are.
constexpr int64_t gelu_chunk(int64_t rows) { return chunk_length(rows, kGeluChunk, kGeluChunks); }
constexpr int64_t gelu_chunks(int64_t rows) { return chunk_count(rows, gelu_chunk(rows)); }

}  // namespace welkin::ops
