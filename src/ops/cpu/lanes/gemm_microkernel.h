// SPDX-License-Identifier: Apache-2.0
// The register-blocked matmul of dense matrices for attention. In an unnamed namespace for the reason in
// ops/cpu/lanes/lanes.h.
#pragma once

#include "ops/cpu/lanes/dot.h"

namespace welkin::ops {
namespace {

// A (rows, depth) at row_stride and depth_stride; B (depth, ...) at `stride`; C (rows, ...) at `stride`. For bfloat16 the two
// elements of a pair of depths are adjacent: in A at even multiples of depth_stride, in B as two interleaved rows.
template <typename T>
struct Left {
  const T* data;
  int64_t row_stride;
  int64_t depth_stride;
};
template <typename T>
struct Right {
  const T* data;
  int64_t stride;
};
struct Result {
  float* data;
  int64_t stride;
};

// R rows and V vectors of C = A B, or C += A B, held in registers over the whole depth. The matmul is summed separately and
// then added: a long sum made of short ones rounds less.
template <int W, typename T, int R, int V, bool Add>
WELKIN_INLINE void matmul_tile(Left<T> a, Right<T> b, Result c, int64_t depth) {
  using Step = Dot<W, T>;
  Floats<W> sums[R][V];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) sums[r][v] = Floats<W>{};
  }
  for (int64_t k = 0; k < depth; k += Step::kDepth) {
    typename Step::Vector right[V];
    for (int v = 0; v < V; ++v) right[v] = Step::read(b.data + k * b.stride + v * W * Step::kDepth);
    for (int r = 0; r < R; ++r) {
      const typename Step::Vector left = Step::spread(a.data + r * a.row_stride + k * a.depth_stride);
      for (int v = 0; v < V; ++v) sums[r][v] = Step::add(sums[r][v], left, right[v]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) {
      float* to = c.data + r * c.stride + v * W;
      store<W>(to, Add ? load<W>(to) + sums[r][v] : sums[r][v]);
    }
  }
}

// `rows` rows (a multiple of tile_rows) of V vectors.
template <int W, typename T, int V, bool Add>
__attribute__((noinline)) void matmul_rows(Left<T> a, Right<T> b, Result c, int64_t depth, int64_t rows) {
  constexpr int kRows = tile_rows(W, V);
  for (int64_t r = 0; r < rows; r += kRows) {
    matmul_tile<W, T, kRows, V, Add>({a.data + r * a.row_stride, a.row_stride, a.depth_stride}, b,
                                     {c.data + r * c.stride, c.stride}, depth);
  }
}

// C += A B over `width` columns, a multiple of W.
template <int W, typename T>
void add_matmul(Left<T> a, Right<T> b, Result c, int64_t depth, int64_t rows, int64_t width) {
  for (int64_t left = width / W; left > 0;) {
    const int vectors = next_vectors<W>(left);
    switch (vectors) {
      case 1:
        matmul_rows<W, T, 1, true>(a, b, c, depth, rows);
        break;
      case 2:
        matmul_rows<W, T, 2, true>(a, b, c, depth, rows);
        break;
      case 3:
        matmul_rows<W, T, 3, true>(a, b, c, depth, rows);
        break;
      default:
        matmul_rows<W, T, 4, true>(a, b, c, depth, rows);
        break;
    }
    left -= vectors;
    b.data += vectors * W * Dot<W, T>::kDepth;
    c.data += vectors * W;
  }
}

}  // namespace
}  // namespace welkin::ops
