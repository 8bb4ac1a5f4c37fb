// SPDX-License-Identifier: Apache-2.0
// Bounds on the difference of two correct computations of the same thing: from the unit roundoff u = 2^-p of a number format
// and the length K of the longest sum. The one table of docs/reference/numerics.md, for `welkin verify` and for the tests
// alike. Torch-free.
#pragma once

#include <cmath>
#include <cstdint>

namespace welkin {

// u: half the spacing of numbers next to 1, the largest relative error of one rounding.
struct NumberFormat {
  double roundoff;
};
inline constexpr NumberFormat kFp64{0x1p-53}, kFp32{0x1p-24}, kFp16{0x1p-11}, kBf16{0x1p-8};
inline constexpr NumberFormat kTwoBf16{0x1p-16};  // the sum of two bfloat16; the smaller holds the rounding error

// Independent roundings add up like a random walk: sqrt(K) u, relative to the root of the sum of squares. Four deviations.
inline double sum_bound(const NumberFormat& format, int64_t reduction_length) {
  return 4 * std::sqrt(static_cast<double>(reduction_length)) * format.roundoff;
}

// K u: an upper bound for any order of summation and any roundings, relative to the sum of absolute values. For sums whose
// terms have one sign, where roundings are not independent (means of squares, norms).
inline double worst_sum_bound(const NumberFormat& format, int64_t reduction_length) {
  return static_cast<double>(reduction_length) * format.roundoff;
}

// A few operations on one number, none of them a sum: each rounds once.
inline double few_roundings(const NumberFormat& format, int operations) { return operations * format.roundoff; }

// A model whose operands are rounded to low precision once per layer, with sums in float32.
struct LowPrecisionBounds {
  double forward = 0;    // relative L2 of output and activations
  double loss = 0;       // relative: roundings of single points average out
  double deviation = 0;  // of the output from float32: half of it at least, or the low precision was not used

  static LowPrecisionBounds of(const NumberFormat& format) { return {6 * format.roundoff, format.roundoff, format.roundoff / 2}; }
};

}  // namespace welkin
