// SPDX-License-Identifier: Apache-2.0
// Vectors of W float32 lanes as the compiler's vector extension, and the register-blocked product on which the kernels stand.
// Included by files that are compiled once per instruction set: everything is in an unnamed namespace, so that no function
// compiled for one CPU is linked into the code for another.
#pragma once

#include <cstdint>

namespace welkin::ops {
namespace {

template <int W>
struct Lanes {
  typedef float Float __attribute__((vector_size(4 * W)));  // NOLINT(modernize-use-using): a using loses the attribute in GCC
  typedef int32_t Int __attribute__((vector_size(4 * W)));  // NOLINT(modernize-use-using)
  typedef float Unaligned __attribute__((vector_size(4 * W), aligned(4)));  // NOLINT(modernize-use-using)
};

template <int W>
using Floats = typename Lanes<W>::Float;

#define WELKIN_INLINE inline __attribute__((always_inline))

template <int W>
WELKIN_INLINE Floats<W> load(const float* from) {
  return *reinterpret_cast<const typename Lanes<W>::Unaligned*>(from);
}

template <int W>
WELKIN_INLINE void store(float* to, Floats<W> x) {
  *reinterpret_cast<typename Lanes<W>::Unaligned*>(to) = x;
}

template <int W>
WELKIN_INLINE Floats<W> broadcast(float x) {
  return x - Floats<W>{};
}

// 2^x for x <= 0 (any x below 127), relative error below 2e-7; 2^-126 for anything smaller than that; NaN stays. The polynomial
// is Cephes' exp2f.
template <int W>
WELKIN_INLINE Floats<W> exp2_lanes(Floats<W> x) {
  using Int = typename Lanes<W>::Int;
  const Floats<W> least = broadcast<W>(-126.0F);
  x = x < least ? least : x;
  const Floats<W> shift = broadcast<W>(12582912.0F);  // 1.5 * 2^23: the sum's low bits are the rounded integer
  const Floats<W> shifted = x + shift;
  const Floats<W> f = x - (shifted - shift);
  Floats<W> p = broadcast<W>(1.535336188319500e-4F);
  p = p * f + 1.339887440266574e-3F;
  p = p * f + 9.618437357674640e-3F;
  p = p * f + 5.550332471162809e-2F;
  p = p * f + 2.402264791363012e-1F;
  p = p * f + 6.931472028550421e-1F;
  p = p * f + 1.0F;
  return reinterpret_cast<Floats<W>>(reinterpret_cast<Int>(p) + (reinterpret_cast<Int>(shifted) << 23));
}

template <int W>
WELKIN_INLINE float sum_of(Floats<W> x) {
  float sum = 0;
  for (int i = 0; i < W; ++i) sum += x[i];
  return sum;
}

template <int W>
WELKIN_INLINE float largest_of(Floats<W> x) {
  float largest = x[0];
  for (int i = 1; i < W; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

// A (rows, depth) at row_stride and depth_stride; B (depth, ...) at `stride`; C (rows, ...) at `stride`.
struct Left {
  const float* data;
  int64_t row_stride;
  int64_t depth_stride;
};
struct Right {
  const float* data;
  int64_t stride;
};
struct Result {
  float* data;
  int64_t stride;
};

// R rows and V vectors of C = A B, or C += A B, held in registers over the whole depth. The product is summed on its own and then
// added: a long sum made of short ones rounds less.
template <int W, int R, int V, bool Add>
WELKIN_INLINE void product_tile(Left a, Right b, Result c, int64_t depth) {
  Floats<W> sums[R][V];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) sums[r][v] = Floats<W>{};
  }
  for (int64_t k = 0; k < depth; ++k) {
    Floats<W> right[V];
    for (int v = 0; v < V; ++v) right[v] = load<W>(b.data + k * b.stride + v * W);
    for (int r = 0; r < R; ++r) {
      const Floats<W> left = broadcast<W>(a.data[r * a.row_stride + k * a.depth_stride]);
      for (int v = 0; v < V; ++v) sums[r][v] += left * right[v];
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) {
      float* to = c.data + r * c.stride + v * W;
      store<W>(to, Add ? load<W>(to) + sums[r][v] : sums[r][v]);
    }
  }
}

// Rows of a tile that V vectors leave registers for: 32 registers at 16 lanes, 16 below.
constexpr int tile_rows(int lanes, int vectors) {
  constexpr int kWide[] = {16, 12, 8, 6};
  constexpr int kNarrow[] = {12, 6, 4, 3};
  return lanes == 16 ? kWide[vectors - 1] : kNarrow[vectors - 1];
}

// `rows` rows (a multiple of tile_rows) of V vectors.
template <int W, int V, bool Add>
__attribute__((noinline)) void product_rows(Left a, Right b, Result c, int64_t depth, int64_t rows) {
  constexpr int kRows = tile_rows(W, V);
  for (int64_t r = 0; r < rows; r += kRows) {
    product_tile<W, kRows, V, Add>({a.data + r * a.row_stride, a.row_stride, a.depth_stride}, b,
                                   {c.data + r * c.stride, c.stride}, depth);
  }
}

// How many of the `left` vectors of a row to take next.
template <int W>
constexpr int next_vectors(int64_t left) {
  if (left % 3 == 0) return 3;
  if (W == 16 && left % 4 == 0) return 4;
  if (left == 4 || left == 2) return 2;
  return left > 3 ? 3 : 1;
}

// C += A B over `width` columns, a multiple of W.
template <int W>
void add_product(Left a, Right b, Result c, int64_t depth, int64_t rows, int64_t width) {
  for (int64_t left = width / W; left > 0;) {
    const int vectors = next_vectors<W>(left);
    switch (vectors) {
      case 1:
        product_rows<W, 1, true>(a, b, c, depth, rows);
        break;
      case 2:
        product_rows<W, 2, true>(a, b, c, depth, rows);
        break;
      case 3:
        product_rows<W, 3, true>(a, b, c, depth, rows);
        break;
      default:
        product_rows<W, 4, true>(a, b, c, depth, rows);
        break;
    }
    left -= vectors;
    b.data += vectors * W;
    c.data += vectors * W;
  }
}

}  // namespace
}  // namespace welkin::ops
