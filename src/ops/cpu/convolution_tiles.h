// SPDX-License-Identifier: Apache-2.0
// Both products for W lanes. Each block is summed from zero and then added: a sum over all taps and channels, tens of thousands
// of terms, is made of short ones and rounds less, so that fewer activations fall on the other side of a kink. Included by one
// file per instruction set; see ops/cpu/lanes.h for why all is unnamed.
#pragma once

#include "ops/cpu/convolution_kernel.h"
#include "ops/cpu/lanes.h"

namespace welkin::ops {
namespace {

template <int W, int R, int V>
WELKIN_INLINE void add_rows_tile(const float* const* left, float* const* result, int64_t offset, const float* right,
                                 int64_t stride, int64_t depth) {
  const float* from[R];
  Floats<W> sums[R][V];
  for (int r = 0; r < R; ++r) {
    from[r] = left[r];
    for (int v = 0; v < V; ++v) sums[r][v] = Floats<W>{};
  }
  for (int64_t k = 0; k < depth; ++k) {
    Floats<W> b[V];
    for (int v = 0; v < V; ++v) b[v] = load<W>(right + k * stride + v * W);
    for (int r = 0; r < R; ++r) {
      const Floats<W> a = broadcast<W>(from[r][k]);
      for (int v = 0; v < V; ++v) sums[r][v] += a * b[v];
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) {
      float* to = result[r] + offset + v * W;
      store<W>(to, load<W>(to) + sums[r][v]);
    }
  }
}

// V vectors from `offset` on, for all rows. The last tile is filled up with the last row, whose further copies go nowhere.
template <int W, int V>
__attribute__((noinline)) void add_rows_strip(const float* const* left, float* const* result, int64_t count, int64_t offset,
                                              const float* right, int64_t stride, int64_t depth) {
  constexpr int kRows = tile_rows(W, V);
  int64_t row = 0;
  for (; row + kRows <= count; row += kRows) add_rows_tile<W, kRows, V>(left + row, result + row, offset, right, stride, depth);
  if (row == count) return;
  float nowhere[kChannelPanel] = {};
  const float* last_left[kRows];
  float* last_result[kRows];
  for (int r = 0; r < kRows; ++r) {
    const bool real = row + r < count;
    last_left[r] = real ? left[row + r] : left[count - 1];
    last_result[r] = real ? result[row + r] : nowhere;
  }
  add_rows_tile<W, kRows, V>(last_left, last_result, offset, right, stride, depth);
}

template <int W>
void add_rows(const float* const* left, float* const* result, int64_t count, const float* right, int64_t depth, int64_t width) {
  for (int64_t done = 0; done < width / W;) {
    const int vectors = next_vectors<W>(width / W - done);
    const float* strip = right + done * W;
    switch (vectors) {
      case 1:
        add_rows_strip<W, 1>(left, result, count, done * W, strip, width, depth);
        break;
      case 2:
        add_rows_strip<W, 2>(left, result, count, done * W, strip, width, depth);
        break;
      case 3:
        add_rows_strip<W, 3>(left, result, count, done * W, strip, width, depth);
        break;
      default:
        add_rows_strip<W, 4>(left, result, count, done * W, strip, width, depth);
        break;
    }
    done += vectors;
  }
}

template <int W, int R, int V, bool Add>
WELKIN_INLINE void outer_tile(const float* const* left, const float* const* right, int64_t count, int64_t row, int64_t column,
                              float* sum, int64_t stride) {
  Floats<W> sums[R][V];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) sums[r][v] = Floats<W>{};
  }
  for (int64_t i = 0; i < count; ++i) {
    const float* a = left[i] + row;
    const float* b = right[i] + column;
    Floats<W> columns[V];
    for (int v = 0; v < V; ++v) columns[v] = load<W>(b + v * W);
    for (int r = 0; r < R; ++r) {
      const Floats<W> x = broadcast<W>(a[r]);
      for (int v = 0; v < V; ++v) sums[r][v] += x * columns[v];
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) {
      float* to = sum + r * stride + v * W;
      store<W>(to, Add ? load<W>(to) + sums[r][v] : sums[r][v]);
    }
  }
}

// Rows of the outer product's tile: what leaves registers for the columns.
constexpr int outer_rows(int lanes, int vectors) {
  if (lanes == 16) return vectors <= 2 ? 8 : 6;
  return vectors == 1 ? 8 : 4;
}

template <int W, int V, bool Add>
__attribute__((noinline)) void outer_strip(const float* const* left, const float* const* right, int64_t count, int64_t column,
                                           float* sum, int64_t stride, int64_t rows) {
  constexpr int kRows = outer_rows(W, V);
  int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    outer_tile<W, kRows, V, Add>(left, right, count, row, column, sum + row * stride + column, stride);
  }
  constexpr int kFew = 2;  // blocks have an even number of channels
  for (; row < rows; row += kFew)
    outer_tile<W, kFew, V, Add>(left, right, count, row, column, sum + row * stride + column, stride);
}

// At 8 and 4 lanes two vectors: with three, too few rows stay for the latency of a multiply-add.
template <int W>
constexpr int next_outer_vectors(int64_t left) {
  if (W == 16) return next_vectors<W>(left);
  return left >= 2 ? 2 : 1;
}

template <int W, bool Add>
void sum_outer_as(const float* const* left, const float* const* right, int64_t count, float* sum, int64_t stride, int64_t rows,
                  int64_t width) {
  for (int64_t done = 0; done < width / W;) {
    const int vectors = next_outer_vectors<W>(width / W - done);
    switch (vectors) {
      case 1:
        outer_strip<W, 1, Add>(left, right, count, done * W, sum, stride, rows);
        break;
      case 2:
        outer_strip<W, 2, Add>(left, right, count, done * W, sum, stride, rows);
        break;
      case 3:
        outer_strip<W, 3, Add>(left, right, count, done * W, sum, stride, rows);
        break;
      default:
        outer_strip<W, 4, Add>(left, right, count, done * W, sum, stride, rows);
        break;
    }
    done += vectors;
  }
}

template <int W>
void sum_outer(const float* const* left, const float* const* right, int64_t count, float* sum, int64_t stride, int64_t rows,
               int64_t width, bool add) {
  if (add) {
    sum_outer_as<W, true>(left, right, count, sum, stride, rows, width);
  } else {
    sum_outer_as<W, false>(left, right, count, sum, stride, rows, width);
  }
}

}  // namespace
}  // namespace welkin::ops
