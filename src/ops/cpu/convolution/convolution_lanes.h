// SPDX-License-Identifier: Apache-2.0
// What the matmuls and the loops over rows share. In an unnamed namespace for the reason in ops/cpu/lanes/lanes.h.
#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/cpu/convolution/convolution_kernel.h"
#include "ops/cpu/lanes/lanes.h"

namespace welkin::ops {
namespace {

// The leaky ReLU for lanes, with a slope of 0 or more. A ReLU makes zero of infinities and of any gradient below zero; a
// product with its slope would make NaN (ops/arithmetic/bias_leaky_relu_kernel.h).
template <int W>
class LeakyReluLanes {
 public:
  WELKIN_INLINE explicit LeakyReluLanes(float slope)
      : slope_(slope), floor_(broadcast<W>(slope == 0 ? 0.0F : -kInfinity)), kept_(Int{} - (slope == 0 ? 0 : 1)) {}

  WELKIN_INLINE Floats<W> of(Floats<W> x) const {
    const Floats<W> below = floor_ > x ? floor_ : x;  // this order is one x86 instruction, and keeps NaN
    return x > Floats<W>{} ? x : below * slope_;
  }
  WELKIN_INLINE Floats<W> of_gradient(Floats<W> gradient, Floats<W> out) const {
    const Floats<W> below = reinterpret_cast<Floats<W>>(reinterpret_cast<Int>(gradient * slope_) & kept_);
    return out > Floats<W>{} ? gradient : below;
  }

 private:
  using Int = typename Lanes<W>::Int;
  static constexpr float kInfinity = __builtin_inff();
  float slope_;
  Floats<W> floor_;  // lower limit of sums: minus infinity, or zero for a ReLU
  Int kept_;         // mask for the bits of a gradient below zero
};

// True if a width may be a multiple of half a vector: the last 8 channels then have a vector of their own.
template <int W, typename T>
constexpr bool kEndsWithHalf = (W == 2 * kFloatMultiple) && std::is_same_v<T, float>;

// Calls body(lanes, i) for vectors of W lanes from 0 on, and for one of 8 at the end if `count`, a multiple of 8, is none of W.
template <int W, typename Body>
WELKIN_INLINE void for_vectors(int64_t count, Body&& body) {
  int64_t i = 0;
  for (; i + W <= count; i += W) body(std::integral_constant<int, W>(), i);
  if constexpr (W > kFloatMultiple) {
    if (i < count) body(std::integral_constant<int, static_cast<int>(kFloatMultiple)>(), i);
  }
}

}  // namespace
}  // namespace welkin::ops
