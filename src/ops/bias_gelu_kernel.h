// SPDX-License-Identifier: Apache-2.0
// The arithmetic and the walk of gelu(x + bias) on a GPU, forward and backward; torch-free. GELU is the exact one, in float32.
// Matrices are (rows, width), without gaps. The backward pass makes gelu(x + bias) again, for the weight's gradient of the
// product after it, while it has x in hand; the gradient of the bias is summed by blocks of rows, then the blocks are, so that
// its bits are the same every time.
#pragma once

#include <cmath>
#include <cstdint>

namespace welkin::ops {

inline constexpr int kGeluLanes = 32;        // columns of a block of the backward pass
inline constexpr int kGeluRows = 8;          // and rows that it has under way
inline constexpr int64_t kGeluChunk = 128;   // rows of which it sums the gradient of the bias
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
  const Low* of_out = nullptr;  // the gradient of the result
  const Low* x = nullptr;
  const float* bias = nullptr;
  Low* out = nullptr;  // the result again
  Low* of_x = nullptr;
};

// The standard normal distribution. Templates, since erff and expf are no constant expressions to every compiler.
template <typename Real>
constexpr Real normal_below(Real x) {
  constexpr Real kSqrtHalf = 0.70710678118654752440F;
  return static_cast<Real>(0.5) * (1 + erff(x * kSqrtHalf));
}

template <typename Real>
constexpr Real gelu_value(Real x) {
  return x * normal_below(x);
}

template <typename Real>
constexpr Real gelu_slope(Real x) {
  constexpr Real kDensityAtZero = 0.39894228040143267794F;
  return normal_below(x) + x * kDensityAtZero * expf(static_cast<Real>(-0.5) * x * x);
}

// Every threads-th column of a row, from column `thread` on.
template <typename Low>
constexpr void gelu_share(const GeluForward<Low>& call, int64_t row, int thread, int threads) {
  for (int64_t column = thread; column < call.width; column += threads) {
    const int64_t i = row * call.width + column;
    call.out[i] = static_cast<Low>(gelu_value(static_cast<float>(call.x[i]) + call.bias[column]));
  }
}

// Rows of a chunk, and how many there are.
constexpr int64_t gelu_chunk(int64_t rows) {
  const int64_t enough = (rows + kGeluChunks - 1) / kGeluChunks;
  return enough > kGeluChunk ? enough : kGeluChunk;
}
constexpr int64_t gelu_chunks(int64_t rows) { return (rows + gelu_chunk(rows) - 1) / gelu_chunk(rows); }

// Every kGeluRows-th row of a chunk, from its row `first` on: writes what the pass has to write there, returns the sum of the
// gradients, before they are rounded.
template <typename Low>
constexpr float gelu_backward_share(const GeluBackward<Low>& call, int64_t chunk, int64_t column, int first) {
  const int64_t length = gelu_chunk(call.rows), begin = chunk * length;
  const int64_t end = begin + length < call.rows ? begin + length : call.rows;
  float sum = 0;
  for (int64_t row = begin + first; row < end; row += kGeluRows) {
    const int64_t i = row * call.width + column;
    const float x = static_cast<float>(call.x[i]) + call.bias[column];
    const float of_x = static_cast<float>(call.of_out[i]) * gelu_slope(x);
    call.out[i] = static_cast<Low>(gelu_value(x));
    call.of_x[i] = static_cast<Low>(of_x);
    sum += of_x;
  }
  return sum;
}

// partials (chunks, width): the sum of a column.
constexpr float gelu_bias_total(const float* partials, int64_t chunks, int64_t width, int64_t column) {
  float sum = 0;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) sum += partials[chunk * width + column];
  return sum;
}

}  // namespace welkin::ops
