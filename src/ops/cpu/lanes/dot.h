// SPDX-License-Identifier: Apache-2.0
// One step of a matmul: reads operands of type T, and says how many elements of depth a step sums. bf16_dot.h has bfloat16's.
// In an unnamed namespace for the reason in ops/cpu/lanes/lanes.h.
#pragma once

#include "ops/cpu/lanes/lanes.h"

namespace welkin::ops {
namespace {

template <int W, typename T>
struct Dot;

template <int W>
struct Dot<W, float> {
  using Vector = Floats<W>;
  static constexpr int kDepth = 1;
  static WELKIN_INLINE Vector read(const float* from) { return load<W>(from); }
  static WELKIN_INLINE Vector spread(const float* from) { return broadcast<W>(*from); }
  static WELKIN_INLINE Floats<W> add(Floats<W> sum, Vector a, Vector b) { return sum + a * b; }
  static WELKIN_INLINE void write(float* to, Floats<W> x) { store<W>(to, x); }
};

}  // namespace
}  // namespace welkin::ops
