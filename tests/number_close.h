// SPDX-License-Identifier: Apache-2.0
// Numbers against numbers, torch-free. Roundings have a bound from core/rounding.h: a test names the format and how many there
// are. What is no rounding (a law of physics on a mesh, digits of a publication, the spread of a sample) is stated with its
// reason. docs/reference/numerics.md has both; tools/check_tree.py keeps typed tolerances out of the tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "core/rounding.h"

namespace welkin::tests {

// |got - wanted| <= `operations` roundings of numbers as large as `scale`.
inline testing::AssertionResult rounds_to(double got, double wanted, double scale, NumberFormat format, int64_t operations) {
  const double bound = worst_sum_bound(format, operations) * std::abs(scale);
  if (std::abs(got - wanted) <= bound) return testing::AssertionSuccess();  // a NaN is not
  return testing::AssertionFailure() << "got " << got << ", wanted " << wanted << ", difference " << got - wanted << ", bound "
                                     << bound << " (" << operations << " roundings on the scale of " << scale << ")";
}

// One number that took `operations` roundings.
inline testing::AssertionResult close(double got, double wanted, NumberFormat format, int64_t operations) {
  return rounds_to(got, wanted, wanted, format, operations);
}

// A bound that does not come from rounding, in the units of the values, and why it is what it is.
struct Stated {
  double bound;
  const char* reason;
};

inline testing::AssertionResult within(double got, double wanted, Stated stated) {
  if (std::abs(got - wanted) <= stated.bound) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "got " << got << ", wanted " << wanted << ", difference " << got - wanted << ", bound "
                                     << stated.bound << ": " << stated.reason;
}

}  // namespace welkin::tests
