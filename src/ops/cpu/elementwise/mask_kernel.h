// SPDX-License-Identifier: Apache-2.0
// Dropout factors of consecutive elements (ops/arithmetic/philox_mask.h), many at once, as plain pointers, and their table per
// instruction set; torch-free.
#pragma once

#include <cstdint>

#include "ops/arithmetic/philox_mask.h"
#include "ops/base/instruction_set.h"

namespace welkin::ops {

struct MaskKernel {
  // factors[0, count) = rule.scale where the mask keeps element start + i of the sample of `counter`, else 0.
  void (*factors)(const MaskRule& rule, uint64_t counter, uint64_t start, int64_t count, float* factors);
};

const MaskKernel& mask_kernel_portable();
const MaskKernel& mask_kernel_avx2();    // x86-64 only
const MaskKernel& mask_kernel_avx512();  // x86-64 only

const MaskKernel& mask_kernel(InstructionSet set);

}  // namespace welkin::ops
