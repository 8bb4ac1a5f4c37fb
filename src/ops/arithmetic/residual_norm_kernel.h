// SPDX-License-Identifier: Apache-2.0
// Arithmetic and traversal of a residual sum with its layer norm on a GPU, forward and backward; torch-free. A warp has a row.
// Each of its lanes has every 32nd column, the same in every pass. So a lane rereads only what it has written itself, and lanes
// are summed between the passes. Rows of packs stay in registers (ops/cuda/residual_norm.cu).
#pragma once

#include <cmath>
#include <cstdint>

#include "ops/arithmetic/row_chunks.h"

namespace welkin::ops {

inline constexpr int kNormLanes = 32;
inline constexpr int kNormRows = 8;          // warps of a block
inline constexpr int64_t kNormChunk = 64;    // rows whose gradients of weight and bias one block sums
inline constexpr int64_t kNormChunks = 512;  // at most; chunks of more rows get longer

// Low is the type of the branch and of the norm's result for the next matmul: float, half or bfloat16. Matrices are (rows,
// width), without gaps.
template <typename Low>
struct NormForward {
  int64_t rows = 0, width = 0;
  float epsilon = 0;
  const float* x = nullptr;
  const Low* branch = nullptr;  // null: the norm of x only
  const float* weight = nullptr;
  const float* bias = nullptr;
  float* sum = nullptr;   // x + branch; null without a branch
  Low* normed = nullptr;  // layer norm of the sum
  float* mean = nullptr;  // (rows)
  float* rstd = nullptr;  // (rows), 1 / sqrt(variance + epsilon)
};

template <typename Low>
struct NormBackward {
  int64_t rows = 0, width = 0;
  const Low* grad_normed = nullptr;  // gradients of the two results
  const float* of_sum = nullptr;     // null: zero
  const float* sum = nullptr;
  const float* mean = nullptr;
  const float* rstd = nullptr;
  const float* weight = nullptr;
  float* grad_x = nullptr;
  Low* grad_branch = nullptr;  // null if grad_x serves as it, and without a branch
};

// First pass: writes the lane's part of the sum, returns the total of its values.
template <typename Low>
constexpr float add_share(const NormForward<Low>& call, int64_t row, int lane) {
  float total = 0;
  for (int64_t i = row * call.width + lane; i < (row + 1) * call.width; i += kNormLanes) {
    float value = call.x[i];
    if (call.branch != nullptr) call.sum[i] = value += static_cast<float>(call.branch[i]);
    total += value;
  }
  return total;
}

// The values that are normalised.
template <typename Low>
constexpr const float* values_of(const NormForward<Low>& call) {
  return call.branch == nullptr ? call.x : call.sum;
}

template <typename Low>
constexpr float deviation_share(const NormForward<Low>& call, int64_t row, float mean, int lane) {
  const float* const values = values_of(call);
  float total = 0;
  for (int64_t i = row * call.width + lane; i < (row + 1) * call.width; i += kNormLanes) {
    total += (values[i] - mean) * (values[i] - mean);
  }
  return total;
}

// A template, since not every compiler accepts sqrtf in a constant expression.
template <typename Real>
constexpr Real rstd_of(Real squares, int64_t width, Real epsilon) {
  return 1 / sqrtf(squares / static_cast<Real>(width) + epsilon);
}

template <typename Low>
constexpr void norm_share(const NormForward<Low>& call, int64_t row, float mean, float rstd, int lane) {
  const float* const values = values_of(call);
  for (int64_t column = lane; column < call.width; column += kNormLanes) {
    const int64_t i = row * call.width + column;
    call.normed[i] = static_cast<Low>((values[i] - mean) * rstd * call.weight[column] + call.bias[column]);
  }
  if (lane == 0) {
    call.mean[row] = mean;
    call.rstd[row] = rstd;
  }
}

// Two sums over a row, which all its gradients need.
struct NormSums {
  float plain = 0;   // of weight * gradient
  float scaled = 0;  // the same times the normalised value
};

template <typename Low>
constexpr NormSums gradient_share(const NormBackward<Low>& call, int64_t row, int lane) {
  NormSums sums;
  for (int64_t column = lane; column < call.width; column += kNormLanes) {
    const int64_t i = row * call.width + column;
    const float gradient = static_cast<float>(call.grad_normed[i]) * call.weight[column];
    sums.plain += gradient;
    sums.scaled += gradient * (call.sum[i] - call.mean[row]) * call.rstd[row];
  }
  return sums;
}

template <typename Low>
constexpr void backward_share(const NormBackward<Low>& call, int64_t row, const NormSums& sums, int lane) {
  const float mean = call.mean[row], rstd = call.rstd[row], share = 1 / static_cast<float>(call.width);
  for (int64_t column = lane; column < call.width; column += kNormLanes) {
    const int64_t i = row * call.width + column;
    const float gradient = static_cast<float>(call.grad_normed[i]) * call.weight[column];
    const float normed = (call.sum[i] - mean) * rstd;
    float grad_x = rstd * (gradient - share * sums.plain - normed * share * sums.scaled);
    if (call.of_sum != nullptr) grad_x += call.of_sum[i];
    call.grad_x[i] = grad_x;
    if (call.grad_branch != nullptr) call.grad_branch[i] = static_cast<Low>(grad_x);
  }
}

// Gradients of weight and bias: blocks sum chunks of rows, then the chunks are summed. Rows of a chunk, and number of chunks.
constexpr int64_t norm_chunk(int64_t rows) { return chunk_length(rows, kNormChunk, kNormChunks); }
constexpr int64_t norm_chunks(int64_t rows) { return chunk_count(rows, norm_chunk(rows)); }

struct ColumnSums {
  float weight = 0, bias = 0;
};

// Sums over every kNormRows-th row of a chunk, starting at row `first`.
template <typename Low>
constexpr ColumnSums column_share(const NormBackward<Low>& call, int64_t chunk, int64_t column, int first) {
  const int64_t length = norm_chunk(call.rows), begin = chunk * length;
  const int64_t end = begin + length < call.rows ? begin + length : call.rows;
  ColumnSums sums;
  for (int64_t row = begin + first; row < end; row += kNormRows) {
    const int64_t i = row * call.width + column;
    const auto gradient = static_cast<float>(call.grad_normed[i]);
    sums.weight += gradient * (call.sum[i] - call.mean[row]) * call.rstd[row];
    sums.bias += gradient;
  }
  return sums;
}

}  // namespace welkin::ops
