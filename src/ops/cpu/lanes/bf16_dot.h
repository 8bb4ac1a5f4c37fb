// SPDX-License-Identifier: Apache-2.0
// Dot products of pairs of bfloat16 (AVX512-BF16). A packed panel interleaves two rows of depth: the pair of column n is
// one 32-bit word. Rows that are read in place have adjacent pairs already.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "ops/cpu/lanes/bf16.h"
#include "ops/cpu/lanes/dot.h"

namespace welkin::ops {
namespace {

template <>
struct Dot<16, Bf16> {
  using Vector = __m512i;
  static constexpr int kDepth = 2;
  static WELKIN_INLINE Vector read(const Bf16* from) { return _mm512_loadu_si512(from); }
  static WELKIN_INLINE Vector spread(const Bf16* from) {
    int32_t pair = 0;
    std::memcpy(&pair, from, sizeof(pair));
    return _mm512_set1_epi32(pair);
  }
  static WELKIN_INLINE Floats<16> add(Floats<16> sum, Vector a, Vector b) {
    return reinterpret_cast<Floats<16>>(
        _mm512_dpbf16_ps(reinterpret_cast<__m512>(sum), reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b)));
  }
  // Rounded to nearest even.
  static WELKIN_INLINE void write(Bf16* to, Floats<16> x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(x))));
  }
};

typedef uint16_t Halves __attribute__((vector_size(32)));  // NOLINT(modernize-use-using)
typedef uint32_t Words __attribute__((vector_size(64)));   // NOLINT(modernize-use-using)

WELKIN_INLINE Halves load_halves(const Bf16* from) {
  return reinterpret_cast<Halves>(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

// 16 floats rounded to nearest even.
WELKIN_INLINE Halves to_bf16(Floats<16> x) { return reinterpret_cast<Halves>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(x))); }

WELKIN_INLINE void store_bf16(Bf16* to, Floats<16> x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<__m256i>(to_bf16(x)));
}

WELKIN_INLINE Floats<16> load_bf16(const Bf16* from) {
  return reinterpret_cast<Floats<16>>(__builtin_convertvector(load_halves(from), Words) << 16U);
}

// Words whose low half is from `low` and whose high half from `high`.
WELKIN_INLINE __m512i interleaved(Halves low, Halves high) {
  return reinterpret_cast<__m512i>(__builtin_convertvector(low, Words) | (__builtin_convertvector(high, Words) << 16U));
}

}  // namespace
}  // namespace welkin::ops
