// SPDX-License-Identifier: Apache-2.0
// The updates of adaptive_update_kernel.h as loops that the compiler vectorises for the set. Included by one file per
// instruction set; see ops/cpu/lanes/lanes.h for the unnamed namespace.
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/cpu/elementwise/update_loops.h"

namespace welkin::ops {
namespace {

constexpr int64_t kUpdateBuffer = 1024;  // numbers that are summed while they are in the cache

inline void lion_loop(const LionRule& rule_in, int64_t count, float* __restrict value, const float* __restrict gradient,
                      float* __restrict average) {
  const LionRule rule = rule_in;  // a local copy, so that stores cannot alias it
  for (int64_t i = 0; i < count; ++i) {
    const float difference = rule.gradient_scale * gradient[i] - average[i];
    const float mixed = multiply_add(rule.mix, difference, average[i]);
    const float step = mixed > 0 ? rule.rate : (mixed < 0 ? -rule.rate : 0.0F);
    value[i] = rule.keep * value[i] - step;
    average[i] = multiply_add(rule.share, difference, average[i]);
  }
}

WELKIN_INLINE float lamb_update(const LambRule& rule, float value, float average, float square) {
  return rule.factor * average / (std::sqrt(square) * rule.root_factor + rule.epsilon) + rule.decay * value;
}

inline void lamb_buffer(const LambRule& rule_in, int64_t count, const float* __restrict value, const float* __restrict gradient,
                        float* __restrict average, float* __restrict square, float* __restrict update) {
  const LambRule rule = rule_in;
  for (int64_t i = 0; i < count; ++i) {
    const float g = rule.gradient_scale * gradient[i];
    const float m = multiply_add(rule.average_share, g - average[i], average[i]);
    const float v = rule.square_keep * square[i] + rule.square_share * g * g;
    average[i] = m;
    square[i] = v;
    update[i] = lamb_update(rule, value[i], m, v);
  }
}

template <int W>
void lamb_sums_loop(const LambRule& rule, int64_t count, const float* value, const float* gradient, float* average, float* square,
                    double* sums) {
  alignas(64) float update[kUpdateBuffer];
  for (int64_t i = 0; i < count; i += kUpdateBuffer) {
    const int64_t here = std::min(kUpdateBuffer, count - i);
    lamb_buffer(rule, here, value + i, gradient + i, average + i, square + i, update);
    sums[0] += square_sum_loop<W>(value + i, here);
    sums[1] += square_sum_loop<W>(update, here);
  }
}

inline void lamb_loop(const LambRule& rule_in, float step, int64_t count, float* __restrict value,
                      const float* __restrict average, const float* __restrict square) {
  const LambRule rule = rule_in;
  for (int64_t i = 0; i < count; ++i) value[i] -= step * lamb_update(rule, value[i], average[i], square[i]);
}

inline void scaled_buffer(float scale, int64_t count, const float* __restrict gradient, float* __restrict scaled) {
  for (int64_t i = 0; i < count; ++i) scaled[i] = scale * gradient[i];
}

template <int W>
void lars_sums_loop(const LarsRule& rule, int64_t count, const float* value, const float* gradient, double* sums) {
  alignas(64) float scaled[kUpdateBuffer];
  for (int64_t i = 0; i < count; i += kUpdateBuffer) {
    const int64_t here = std::min(kUpdateBuffer, count - i);
    scaled_buffer(rule.gradient_scale, here, gradient + i, scaled);
    sums[0] += square_sum_loop<W>(value + i, here);
    sums[1] += square_sum_loop<W>(scaled, here);
  }
}

inline void lars_loop(const LarsRule& rule_in, float local, int64_t count, float* __restrict value,
                      const float* __restrict gradient, float* __restrict velocity) {
  const LarsRule rule = rule_in;
  for (int64_t i = 0; i < count; ++i) {
    const float v = rule.momentum * velocity[i] + local * (rule.gradient_scale * gradient[i] + rule.decay * value[i]);
    velocity[i] = v;
    value[i] -= v;
  }
}

WELKIN_INLINE float adafactor_update(const AdafactorRule& rule, float gradient, float square) {
  return rule.gradient_scale * gradient / std::sqrt(square > rule.floor ? square : rule.floor);
}

inline void adafactor_buffer(const AdafactorRule& rule_in, int64_t count, const float* __restrict gradient,
                             float* __restrict square, float* __restrict update) {
  const AdafactorRule rule = rule_in;
  for (int64_t i = 0; i < count; ++i) {
    const float g = rule.gradient_scale * gradient[i];
    const float v = multiply_add(rule.share, g * g - square[i], square[i]);
    square[i] = v;
    update[i] = adafactor_update(rule, gradient[i], v);
  }
}

template <int W>
void adafactor_sums_loop(const AdafactorRule& rule, int64_t count, const float* value, const float* gradient, float* square,
                         double* sums) {
  alignas(64) float update[kUpdateBuffer];
  for (int64_t i = 0; i < count; i += kUpdateBuffer) {
    const int64_t here = std::min(kUpdateBuffer, count - i);
    adafactor_buffer(rule, here, gradient + i, square + i, update);
    sums[0] += square_sum_loop<W>(value + i, here);
    sums[1] += square_sum_loop<W>(update, here);
  }
}

inline void adafactor_loop(const AdafactorRule& rule_in, float step, int64_t count, float* __restrict value,
                           const float* __restrict gradient, const float* __restrict square) {
  const AdafactorRule rule = rule_in;
  for (int64_t i = 0; i < count; ++i) {
    value[i] = rule.keep * value[i] - step * adafactor_update(rule, gradient[i], square[i]);
  }
}

inline void column_squares(int64_t count, const float* __restrict scaled, float* __restrict columns) {
  for (int64_t i = 0; i < count; ++i) columns[i] += scaled[i] * scaled[i];
}

template <int W>
double factor_squares_loop(float gradient_scale, int64_t count, const float* gradient, float* columns) {
  alignas(64) float scaled[kUpdateBuffer];
  double sum = 0;
  for (int64_t i = 0; i < count; i += kUpdateBuffer) {
    const int64_t here = std::min(kUpdateBuffer, count - i);
    scaled_buffer(gradient_scale, here, gradient + i, scaled);
    column_squares(here, scaled, columns + i);
    sum += square_sum_loop<W>(scaled, here);
  }
  return sum;
}

inline void factored_buffer(const AdafactorRule& rule_in, float row, int64_t count, const float* __restrict gradient,
                            const float* __restrict columns, float* __restrict update) {
  const AdafactorRule rule = rule_in;
  for (int64_t i = 0; i < count; ++i) update[i] = adafactor_update(rule, gradient[i], row * columns[i]);
}

template <int W>
double factored_sum_loop(const AdafactorRule& rule, float row, int64_t count, const float* gradient, const float* columns) {
  alignas(64) float update[kUpdateBuffer];
  double sum = 0;
  for (int64_t i = 0; i < count; i += kUpdateBuffer) {
    const int64_t here = std::min(kUpdateBuffer, count - i);
    factored_buffer(rule, row, here, gradient + i, columns + i, update);
    sum += square_sum_loop<W>(update, here);
  }
  return sum;
}

inline void factored_loop(const AdafactorRule& rule_in, float step, float row, int64_t count, float* __restrict value,
                          const float* __restrict gradient, const float* __restrict columns) {
  const AdafactorRule rule = rule_in;
  for (int64_t i = 0; i < count; ++i) {
    value[i] = rule.keep * value[i] - step * adafactor_update(rule, gradient[i], row * columns[i]);
  }
}

inline void average_loop(float share, int64_t count, const float* __restrict value, float* __restrict average) {
  for (int64_t i = 0; i < count; ++i) average[i] = multiply_add(share, value[i] - average[i], average[i]);
}

}  // namespace
}  // namespace welkin::ops
