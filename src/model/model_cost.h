// SPDX-License-Identifier: Apache-2.0
// What one sample costs; torch-free. 2 FLOPs per multiply-add, products only (norms and pointwise work excluded), no
// recomputation.
#pragma once

#include <cstdint>

namespace welkin::model {

inline constexpr double kFloatBytes = 4;  // of an activation in the byte counts

struct ModelCost {
  double forward_flops = 0;  // per sample
  double train_flops = 0;    // forward and backward, without the gradient of the model's input
  int64_t parameters = 0;
};

}  // namespace welkin::model
