// SPDX-License-Identifier: Apache-2.0
// Optimizer updates of many float32 tensors on a CPU in one pass over memory and one parallel region: weight, gradient and
// states are read and written once; the gradient's scale is applied on the way. Plain pointers; only torch's threads are used.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/arithmetic/update_kernel.h"

namespace welkin::ops {

// One tensor's memory, with the same element order in all four arrays.
struct UpdateSpan {
  int64_t count = 0;
  float* value = nullptr;
  const float* gradient = nullptr;
  float* first = nullptr;   // Adam's average, or SGD's velocity
  float* second = nullptr;  // Adam's average of squares
};

void fused_adam(const std::vector<UpdateSpan>& runs, const AdamRule& rule);
void fused_sgd(const std::vector<UpdateSpan>& runs, const SgdRule& rule);

struct FloatSpan {
  const float* data = nullptr;
  int64_t count = 0;
};

// Its order does not depend on the number of threads. Not finite if an element's square is not.
double sum_of_squares(const std::vector<FloatSpan>& runs);

}  // namespace welkin::ops
