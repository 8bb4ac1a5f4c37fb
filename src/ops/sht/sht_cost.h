// SPDX-License-Identifier: Apache-2.0
// Cost of a transform between a field and its spherical harmonics, forward; torch-free. Its gradient costs the same FLOPs.
#pragma once

#include <cstdint>

#include "ops/base/operator_cost.h"

namespace welkin::ops {

// FLOPs of the matmuls by Legendre functions, for real and imaginary parts; Fourier transforms are not counted.
inline OperatorCost sht_cost(int64_t channels, int64_t latitudes, int64_t degrees, int64_t orders, double element_bytes) {
  const auto rows = 2.0 * static_cast<double>(channels);
  const auto h = static_cast<double>(latitudes), l = static_cast<double>(degrees), m = static_cast<double>(orders);
  return {2 * rows * h * l * m, element_bytes * m * (rows * h + h * l + rows * l), rows * l * m};
}

}  // namespace welkin::ops
