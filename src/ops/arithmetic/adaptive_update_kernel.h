// SPDX-License-Identifier: Apache-2.0
// Optimizer updates besides Adam and SGD, for one run of float32 numbers, as plain pointers; torch-free. g stands for
// gradient_scale gradient everywhere. Updates with norms have two passes: the first sums, the second changes the weights.
#pragma once

#include <cstdint>

namespace welkin::ops {

// p = keep p - rate sign(m + mix (g - m)); m += share (g - m).
struct LionRule {
  float gradient_scale = 1, keep = 1, rate = 0, mix = 0, share = 0;
};

// m and v as Adam's; u = factor m / (sqrt(v) root_factor + epsilon) + decay p; p -= step u.
struct LambRule {
  float gradient_scale = 1, average_share = 0, square_keep = 0, square_share = 0;
  float factor = 1, root_factor = 1, epsilon = 0, decay = 0;
};

// v = momentum v + local (g + decay p); p -= v.
struct LarsRule {
  float gradient_scale = 1, decay = 0, momentum = 0;
};

// v += share (g^2 - v); u = g / sqrt(max(v, floor)); p = keep p - step u. Factored: v = row column.
struct AdafactorRule {
  float gradient_scale = 1, share = 0, floor = 0, keep = 1;
};

// Adds the sum of p^2 to sums[0], and that of u^2, or of g^2 for LARS, to sums[1].
struct AdaptiveUpdateKernel {
  void (*lion)(const LionRule& rule, int64_t count, float* value, const float* gradient, float* average);
  void (*lamb_sums)(const LambRule& rule, int64_t count, const float* value, const float* gradient, float* average, float* square,
                    double* sums);
  void (*lamb)(const LambRule& rule, float step, int64_t count, float* value, const float* average, const float* square);
  void (*lars_sums)(const LarsRule& rule, int64_t count, const float* value, const float* gradient, double* sums);
  void (*lars)(const LarsRule& rule, float local, int64_t count, float* value, const float* gradient, float* velocity);
  void (*adafactor_sums)(const AdafactorRule& rule, int64_t count, const float* value, const float* gradient, float* square,
                         double* sums);
  void (*adafactor)(const AdafactorRule& rule, float step, int64_t count, float* value, const float* gradient,
                    const float* square);
  // For one row of a matrix: columns[j] += g_j^2; returns the sum of the row's g^2.
  double (*factor_squares)(float gradient_scale, int64_t count, const float* gradient, float* columns);
  // The sum of u^2 of one row.
  double (*factored_sum)(const AdafactorRule& rule, float row, int64_t count, const float* gradient, const float* columns);
  void (*factored)(const AdafactorRule& rule, float step, float row, int64_t count, float* value, const float* gradient,
                   const float* columns);
  // e += share (p - e): a moving average of weights.
  void (*average)(float share, int64_t count, const float* value, float* average);
};

}  // namespace welkin::ops
