// SPDX-License-Identifier: Apache-2.0
// Vectors of W float32 lanes as the compiler's vector extension.
// Included by files that are compiled once per instruction set: everything is in an unnamed namespace, so that no function
// compiled for one CPU is linked into the code for another.
#pragma once

#include <cstdint>
#include <utility>

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

// Rounds a product before anything is added to it; the flags of these files would fuse both.
template <int W>
WELKIN_INLINE Floats<W> rounded(Floats<W> product) {
#if defined(__AVX512F__)
  asm("" : "+v"(product));
#elif defined(__x86_64__)
  asm("" : "+x"(product));
#elif defined(__aarch64__)
  asm("" : "+w"(product));
#endif
  return product;
}

// 2^x for x <= 0 (any x below 127), relative error below 2e-7; 2^-126 for anything smaller than that; NaN stays. The polynomial
// is Cephes' exp2f.
template <int W>
WELKIN_INLINE Floats<W> exp2_lanes(Floats<W> x) {
  using Int = typename Lanes<W>::Int;
  const Floats<W> least = broadcast<W>(-126.0F);
  x = least > x ? least : x;                          // this order is one x86 instruction, and keeps NaN
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

// Lanes [From, From + W / 2).
template <int W, int From, int... I>
WELKIN_INLINE Floats<W / 2> half_of(Floats<W> x, std::integer_sequence<int, I...> /*lanes*/) {
  return __builtin_shufflevector(x, x, (From + I)...);
}

// Reduces all lanes by halves: in a chain every step would wait for the previous one.
template <int W, typename Combine>
WELKIN_INLINE float reduced(Floats<W> x, Combine combine) {
  if constexpr (W == 2) {
    return combine(x[0], x[1]);
  } else {
    constexpr auto kIndices = std::make_integer_sequence<int, W / 2>();
    return reduced<W / 2>(combine(half_of<W, 0>(x, kIndices), half_of<W, W / 2>(x, kIndices)), combine);
  }
}

template <int W>
WELKIN_INLINE float sum_of(Floats<W> x) {
  return reduced<W>(x, [](auto a, auto b) { return a + b; });
}

template <int W>
WELKIN_INLINE float largest_of(Floats<W> x) {
  return reduced<W>(x, [](auto a, auto b) { return a > b ? a : b; });
}

// Rows of a tile for which V vectors leave registers: 32 registers at 16 lanes, 16 below.
constexpr int tile_rows(int lanes, int vectors) {
  constexpr int kWide[] = {16, 12, 8, 6};
  constexpr int kNarrow[] = {12, 6, 4, 3};
  return lanes == 16 ? kWide[vectors - 1] : kNarrow[vectors - 1];
}

// Number of the remaining `left` vectors of a row to take next.
template <int W>
constexpr int next_vectors(int64_t left) {
  if (left % 3 == 0) return 3;
  if (W == 16 && left % 4 == 0) return 4;
  if (left == 4 || left == 2) return 2;
  return left > 3 ? 3 : 1;
}

}  // namespace
}  // namespace welkin::ops
