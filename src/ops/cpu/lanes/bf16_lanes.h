// SPDX-License-Identifier: Apache-2.0
// W lanes of float32 from bfloat16 and back, for any width. In an unnamed namespace for the reason in ops/cpu/lanes/lanes.h.
#pragma once

#include "ops/cpu/lanes/bf16.h"
#include "ops/cpu/lanes/lanes.h"

namespace welkin::ops {
namespace {

template <int W>
struct Bf16Lanes {
  typedef uint16_t Half __attribute__((vector_size(2 * W)));                   // NOLINT(modernize-use-using)
  typedef uint32_t Word __attribute__((vector_size(4 * W)));                   // NOLINT(modernize-use-using)
  typedef uint16_t Unaligned __attribute__((vector_size(2 * W), aligned(2)));  // NOLINT(modernize-use-using)
};

template <int W>
WELKIN_INLINE Floats<W> load(const Bf16* from) {
  const typename Bf16Lanes<W>::Half half = *reinterpret_cast<const typename Bf16Lanes<W>::Unaligned*>(from);
  return reinterpret_cast<Floats<W>>(__builtin_convertvector(half, typename Bf16Lanes<W>::Word) << 16U);
}

// Rounded to nearest even; NaN stays NaN.
template <int W>
WELKIN_INLINE void store(Bf16* to, Floats<W> x) {
  using Word = typename Bf16Lanes<W>::Word;
  const Word bits = reinterpret_cast<Word>(x);
  const Word high = bits >> 16U;
  const Word rounded = (bits + 0x7FFFU + (high & 1U)) >> 16U;
  const Word kept = x == x ? rounded : (high | 0x40U);
  *reinterpret_cast<typename Bf16Lanes<W>::Unaligned*>(to) = __builtin_convertvector(kept, typename Bf16Lanes<W>::Half);
}

// x after `store` and `load`.
template <int W>
WELKIN_INLINE Floats<W> rounded_to_bf16(Floats<W> x) {
  using Word = typename Bf16Lanes<W>::Word;
  const Word bits = reinterpret_cast<Word>(x);
  const Word rounded = bits + 0x7FFFU + ((bits >> 16U) & 1U);
  return reinterpret_cast<Floats<W>>((x == x ? rounded : bits | 0x400000U) & 0xFFFF0000U);
}

}  // namespace
}  // namespace welkin::ops
