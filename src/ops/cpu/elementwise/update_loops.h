// SPDX-License-Identifier: Apache-2.0
// The updates as loops that the compiler vectorises for the set. Included by one file per instruction set; see
// ops/cpu/lanes/lanes.h for the unnamed namespace.
#pragma once

#include <cmath>

#include "ops/arithmetic/update_kernel.h"
#include "ops/cpu/lanes/lanes.h"

namespace welkin::ops {
namespace {

// a b + c with one rounding, as in PyTorch's kernels: where a first moment nearly cancels, a second rounding is 3e-6 of it.
// Without fused instructions it uses double, in which the product of two floats is exact.
WELKIN_INLINE float multiply_add(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return a * b + c;  // fused by the compiler in these files
#else
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c));
#endif
}

inline void adam_loop(const AdamRule& rule_in, int64_t count, float* __restrict value, const float* __restrict gradient,
                      float* __restrict average, float* __restrict square) {
  const AdamRule rule = rule_in;  // a local copy, so that stores cannot alias it
  for (int64_t i = 0; i < count; ++i) {
    const float g = rule.gradient_scale * gradient[i] + rule.decay * value[i];
    const float m = multiply_add(rule.average_share, g - average[i], average[i]);
    const float v = rule.square_keep * square[i] + rule.square_share * g * g;
    average[i] = m;
    square[i] = v;
    value[i] = rule.keep * value[i] - rule.step * (m / (std::sqrt(v) * rule.root_factor + rule.epsilon));
  }
}

inline void sgd_loop(const SgdRule& rule_in, int64_t count, float* __restrict value, const float* __restrict gradient,
                     float* __restrict velocity) {
  const SgdRule rule = rule_in;
  for (int64_t i = 0; i < count; ++i) {
    const float u = rule.momentum * velocity[i] + (rule.gradient_scale * gradient[i] + rule.decay * value[i]);
    velocity[i] = u;
    value[i] -= rule.rate * u;
  }
}

template <int W>
double square_sum_loop(const float* x, int64_t count) {
  constexpr int64_t kShortSum = 1024;
  constexpr int kSums = 4;  // in flight
  double total = 0;
  int64_t i = 0;
  while (i + kSums * W <= count) {
    const int64_t end = count - i < kShortSum ? count : i + kShortSum;
    Floats<W> sums[kSums] = {};
    for (; i + kSums * W <= end; i += kSums * W) {
      for (int s = 0; s < kSums; ++s) {
        const Floats<W> y = load<W>(x + i + s * W);
        sums[s] += y * y;
      }
    }
    for (const Floats<W>& sum : sums) {
      for (int lane = 0; lane < W; ++lane) total += static_cast<double>(sum[lane]);
    }
  }
  for (; i < count; ++i) total += static_cast<double>(x[i] * x[i]);
  return total;
}

}  // namespace
}  // namespace welkin::ops
