// SPDX-License-Identifier: Apache-2.0
// What the end of a convolution works on, forward and backward: the leaky ReLU of x + bias; torch-free. Matrices are (rows,
// width), without gaps: voxels and their channels. The gradient of the bias is summed by chunks of rows, then the chunks are, so
// that its bits are the same every time.
#pragma once

#include <cstdint>

#include "ops/arithmetic/row_chunks.h"

namespace welkin::ops {

inline constexpr int64_t kLeakyReluChunk = 32;     // rows of which a block sums the gradient of the bias, at least
inline constexpr int64_t kLeakyReluChunks = 1024;  // at most

// Low is the type of activations: float, half or bfloat16.
template <typename Low>
struct LeakyReluForward {
  int64_t rows = 0, width = 0;
  const float* bias = nullptr;  // (width)
  float slope = 0;              // below zero; 0 or more, so that the sign stays
  Low* x = nullptr;             // becomes the result
};

template <typename Low>
struct LeakyReluBackward {
  int64_t rows = 0, width = 0;
  const Low* grad_out = nullptr;  // the gradient of the result
  const Low* out = nullptr;       // the result; null with grad_x
  float slope = 0;
  Low* grad_x = nullptr;  // null: only the sums of grad_out are wanted
};

// What a leaky ReLU makes of a number that is not above zero: of a ReLU zero, an infinite one too; NaN stays.
constexpr float leaky_relu_below(float x, float slope) { return slope == 0 && x <= 0 ? 0 : x * slope; }
// And of the gradient there.
constexpr float leaky_relu_gradient_below(float gradient, float slope) { return slope == 0 ? 0 : gradient * slope; }

// Rows of a chunk, and how many there are.
constexpr int64_t leaky_relu_chunk(int64_t rows) { return chunk_length(rows, kLeakyReluChunk, kLeakyReluChunks); }
constexpr int64_t leaky_relu_chunks(int64_t rows) { return chunk_count(rows, leaky_relu_chunk(rows)); }

}  // namespace welkin::ops
