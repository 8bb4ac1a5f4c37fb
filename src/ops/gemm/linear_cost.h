// SPDX-License-Identifier: Apache-2.0
// Cost of a linear layer, forward; torch-free. Each of its two gradients costs the same FLOPs.
#pragma once

#include <cstdint>

#include "ops/base/operator_cost.h"

namespace welkin::ops {

inline OperatorCost linear_cost(int64_t rows, int64_t in_features, int64_t out_features, double element_bytes) {
  const auto m = static_cast<double>(rows);
  const auto k = static_cast<double>(in_features);
  const auto n = static_cast<double>(out_features);
  return {2.0 * m * k * n, element_bytes * (m * k + k * n + m * n), m * n};
}

}  // namespace welkin::ops
