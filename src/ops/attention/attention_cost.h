// SPDX-License-Identifier: Apache-2.0
// Cost of scaled dot-product attention, forward; torch-free. The backward pass has four matmuls of the same size (five if the
// weights are recomputed). A fused form moves only q, k, v and the result.
#pragma once

#include <cstdint>

#include "ops/base/operator_cost.h"

namespace welkin::ops {

// `width` is heads * head_dim.
inline OperatorCost attention_cost(int64_t queries, int64_t keys, int64_t width, double element_bytes) {
  const auto n = static_cast<double>(queries);
  const auto m = static_cast<double>(keys);
  const auto d = static_cast<double>(width);
  return {4.0 * n * m * d, element_bytes * 2.0 * (n + m) * d, n * d};
}

}  // namespace welkin::ops
