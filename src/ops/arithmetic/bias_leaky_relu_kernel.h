// SPDX-License-Identifier: Apache-2.0
// Arguments of the end of a convolution, forward and backward: the leaky ReLU of x + bias; torch-free. Matrices are (rows,
// width), without gaps: voxels and their channels. The bias gradient is summed by chunks of rows, then over the chunks, so
// that its bits are reproducible.
#pragma once

#include <cstdint>

#include "ops/arithmetic/row_chunks.h"

namespace welkin::ops {

inline constexpr int64_t kLeakyReluChunk = 32;     // rows whose bias gradient one block sums, at least
inline constexpr int64_t kLeakyReluChunks = 1024;  // at most

// Low is the type of activations: float, half or bfloat16.
template <typename Low>
struct LeakyReluForward {
  int64_t rows = 0, width = 0;
  const float* bias = nullptr;  // (width)
  float slope = 0;              // below zero; it must be 0 or more, so that the sign stays
  Low* x = nullptr;             // overwritten by the result
};

template <typename Low>
struct LeakyReluBackward {
  int64_t rows = 0, width = 0;
  const Low* grad_out = nullptr;  // the gradient of the result
  const Low* out = nullptr;       // the result; null with grad_x
  float slope = 0;
  Low* grad_x = nullptr;  // null: only the sums of grad_out are needed
};

// The leaky ReLU of a number that is not above zero. For a ReLU it is zero, for infinities too; NaN stays.
constexpr float leaky_relu_below(float x, float slope) { return slope == 0 && x <= 0 ? 0 : x * slope; }
// The gradient there.
constexpr float leaky_relu_gradient_below(float gradient, float slope) { return slope == 0 ? 0 : gradient * slope; }

// Rows of a chunk, and number of chunks.
constexpr int64_t leaky_relu_chunk(int64_t rows) { return chunk_length(rows, kLeakyReluChunk, kLeakyReluChunks); }
constexpr int64_t leaky_relu_chunks(int64_t rows) { return chunk_count(rows, leaky_relu_chunk(rows)); }

}  // namespace welkin::ops
