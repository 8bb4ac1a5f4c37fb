// SPDX-License-Identifier: Apache-2.0
// Bounds of the tests, all of them from core/rounding.h: a test names the dtype and the length K of the longest sum behind a
// value, never a number. docs/reference/numerics.md has the reasons.
#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "core/rounding.h"
#include "number_close.h"

namespace welkin::tests {

inline NumberFormat format_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return kFp64;
    case at::kHalf:
      return kFp16;
    case at::kBFloat16:
      return kBf16;
    default:
      return kFp32;
  }
}

inline double sum_tolerance(at::ScalarType dtype, int64_t reduction_length) {
  return sum_bound(format_of(dtype), reduction_length);
}

inline double relative_l2(const at::Tensor& got, const at::Tensor& wanted) {
  const at::Tensor a = got.detach().to(at::kDouble), b = wanted.detach().to(at::kDouble);
  const double scale = b.norm().item<double>();
  const double error = a.sub(b).norm().item<double>();
  return error == 0 ? 0 : error / scale;
}

// Two computations of one tensor in `dtype` agree: relative L2 within two bounds of sums of `reduction_length` terms, one for
// each.
inline testing::AssertionResult close(const at::Tensor& got, const at::Tensor& wanted, at::ScalarType dtype,
                                      int64_t reduction_length) {
  if (got.sizes() != wanted.sizes()) {
    return testing::AssertionFailure() << "shapes differ: got " << got.sizes() << ", wanted " << wanted.sizes();
  }
  const double error = relative_l2(got, wanted);
  const double bound = 2 * sum_tolerance(dtype, reduction_length);
  if (error <= bound) return testing::AssertionSuccess();  // a NaN is not
  return testing::AssertionFailure() << "relative L2 " << error << ", bound " << bound << " (" << dtype << ", sums of "
                                     << reduction_length << ")";
}

}  // namespace welkin::tests
