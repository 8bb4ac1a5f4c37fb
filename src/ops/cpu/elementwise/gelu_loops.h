// SPDX-License-Identifier: Apache-2.0
// gelu(x + bias) for W lanes. Included by one file per instruction set; see ops/cpu/lanes/lanes.h for the unnamed namespace.
#pragma once

#include <algorithm>
#include <type_traits>

#include "ops/cpu/elementwise/gelu_kernel.h"
#include "ops/cpu/lanes/bf16_lanes.h"

namespace welkin::ops {
namespace {

template <int W>
struct Normal {
  Floats<W> below, density;
};

// The standard normal distribution and its density at x. With z = |x| and t = 1 / (1 + 0.35 z), the tail beyond z is
// exp(-z^2 / 2) t p(t), the form of Abramowitz and Stegun 7.1.26 with the same exponential as the density. p is the minimax
// polynomial of degree 7 on z in [0, 13.5] for the error over max(tail, 1e-5), 3.1e-8 of it; with float32's roundings the
// distribution is within 2e-7.
template <int W>
WELKIN_INLINE Normal<W> standard_normal(Floats<W> x) {
  constexpr float kHalfLog2E = 0.72134752F;
  constexpr float kDensityAtZero = 0.39894228F;
  const Floats<W> z = x < 0.0F ? -x : x;
  const Floats<W> power = exp2_lanes<W>(x * x * -kHalfLog2E);
  const Floats<W> t = 1.0F / (1.0F + 0.35F * z);
  Floats<W> p = broadcast<W>(-0.0146860238F);
  p = p * t + 0.116609F;
  p = p * t + -0.332549691F;
  p = p * t + 0.376470566F;
  p = p * t + -0.0990145504F;
  p = p * t + 0.184215143F;
  p = p * t + 0.128465563F;
  p = p * t + 0.14049001F;
  const Floats<W> beyond = power * (t * p);
  return {x < 0.0F ? beyond : 1.0F - beyond, power * kDensityAtZero};
}

// Beyond this the density times x is negligible beside 1. exp2_lanes() returns at least 2^-126 for it, which a large x would
// amplify.
constexpr float kDensityEnds = 14.0F;

// Clamps x to [-most, most]; NaN stays.
template <int W>
WELKIN_INLINE Floats<W> within(Floats<W> x, float most) {
  const Floats<W> highest = broadcast<W>(most), least = broadcast<W>(-most);
  x = highest < x ? highest : x;
  return least > x ? least : x;
}

// Loads W columns of a row, or the first `count` of them at the row's end.
template <int W, typename T>
WELKIN_INLINE Floats<W> columns_from(const T* from, int64_t count) {
  if (count >= W) return load<W>(from);
  T some[W] = {};
  std::copy_n(from, count, some);
  return load<W>(some);
}

template <int W, typename T>
WELKIN_INLINE void put_columns(T* to, Floats<W> x, int64_t count) {
  if (count >= W) return store<W>(to, x);
  T some[W];
  store<W>(some, x);
  std::copy_n(some, count, to);
}

// What a matmul's operand in float, of activations in T, holds of x.
template <int W, typename T, typename Operand>
WELKIN_INLINE Floats<W> as_operand(Floats<W> x) {
  if constexpr (std::is_same_v<T, Operand>) return x;
  return rounded_to_bf16<W>(x);
}

template <int W, typename T, typename Operand>
void gelu_forward_rows(const GeluForward<T, Operand>& call, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const T* x = call.x + row * call.width;
    Operand* out = call.out + row * call.width;
    for (int64_t column = 0; column < call.width; column += W) {
      const int64_t left = call.width - column;
      const Floats<W> in = columns_from<W>(x + column, left) + columns_from<W>(call.bias + column, left);
      put_columns<W>(out + column, as_operand<W, T, Operand>(in * standard_normal<W>(in).below), left);
    }
  }
}

template <int W, typename T, typename Operand>
void gelu_backward_rows(const GeluBackward<T, Operand>& call, int64_t begin, int64_t end, float* grad_bias) {
  std::fill_n(grad_bias, call.width, 0.0F);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t first = row * call.width;
    for (int64_t column = 0; column < call.width; column += W) {
      const int64_t left = call.width - column;
      const Floats<W> in = columns_from<W>(call.x + first + column, left) + columns_from<W>(call.bias + column, left);
      const Normal<W> normal = standard_normal<W>(in);
      const Floats<W> slope = normal.below + within<W>(in, kDensityEnds) * normal.density;
      const Floats<W> grad_out = as_operand<W, T, Operand>(columns_from<W>(call.grad_out + first + column, left));
      const Floats<W> grad_x = grad_out * slope;
      put_columns<W>(call.out + first + column, as_operand<W, T, Operand>(in * normal.below), left);
      put_columns<W>(call.grad_x + first + column, grad_x, left);
      put_columns<W>(grad_bias + column, columns_from<W>(grad_bias + column, left) + grad_x, left);
    }
  }
}

template <int W>
constexpr GeluKernels kGelu{{gelu_forward_rows<W, float, float>, gelu_backward_rows<W, float, float>},
                            {gelu_forward_rows<W, Bf16, Bf16>, gelu_backward_rows<W, Bf16, Bf16>},
                            {gelu_forward_rows<W, Bf16, float>, gelu_backward_rows<W, Bf16, float>}};

}  // namespace
}  // namespace welkin::ops
