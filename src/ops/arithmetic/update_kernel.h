// SPDX-License-Identifier: Apache-2.0
// Optimizer updates for one run of float32 numbers, as plain pointers, and their table per instruction set; torch-free.
#pragma once

#include <cstdint>

#include "ops/arithmetic/adaptive_update_kernel.h"
#include "ops/arithmetic/lean_update_kernel.h"
#include "ops/base/instruction_set.h"

namespace welkin::ops {

// m += average_share (g - m); v = square_keep v + square_share g^2; p = keep p - step m / (sqrt(v) root_factor + epsilon), where
// g = gradient_scale gradient + decay p.
struct AdamRule {
  float gradient_scale = 1, decay = 0, keep = 1;
  float average_share = 0, square_keep = 0, square_share = 0;
  float step = 0, root_factor = 1, epsilon = 0;
};

// u = momentum u + g; p -= rate u, with g as above.
struct SgdRule {
  float gradient_scale = 1, decay = 0, momentum = 0, rate = 0;
};

struct UpdateKernel {
  void (*adam)(const AdamRule& rule, int64_t count, float* value, const float* gradient, float* average, float* square);
  void (*sgd)(const SgdRule& rule, int64_t count, float* value, const float* gradient, float* velocity);
  // Sums of at most 1024 squares in float, then summed in double.
  double (*square_sum)(const float* x, int64_t count);
  AdaptiveUpdateKernel adaptive;
  LeanUpdateKernel lean;
};

const UpdateKernel& update_kernel_portable();
const UpdateKernel& update_kernel_avx2();    // x86-64 only
const UpdateKernel& update_kernel_avx512();  // x86-64 only

const UpdateKernel& update_kernel(InstructionSet set);

}  // namespace welkin::ops
