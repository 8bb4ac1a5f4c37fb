// SPDX-License-Identifier: Apache-2.0
// Copies between float32 and bfloat16 on a CPU, as plain pointers, and their table per instruction set; torch-free. aten's take
// twice as long on a processor without vcvtneps2bf16. They need one more pass for a bias, for rounding within float32, and for
// a sum of both types.
#pragma once

#include <cstdint>

#include "ops/base/instruction_set.h"
#include "ops/cpu/lanes/bf16.h"

namespace welkin::ops {

// Rounding is to nearest even; NaN stays NaN.
struct ConvertKernel {
  void (*widen)(const Bf16* from, float* to, int64_t count);
  // `bias` (width), or null, is added to each row before the single rounding.
  void (*narrow)(const float* from, const float* bias, Bf16* to, int64_t rows, int64_t width);
  // Rounds to bfloat16 values, stored as float32. `to` may be `from`.
  void (*round)(const float* from, float* to, int64_t count);
  // x + y in float32.
  void (*add)(const float* x, const Bf16* y, float* to, int64_t count);
};

const ConvertKernel& convert_kernel_portable();
const ConvertKernel& convert_kernel_avx2();    // x86-64 only
const ConvertKernel& convert_kernel_avx512();  // x86-64 only

const ConvertKernel& convert_kernel(InstructionSet set);

}  // namespace welkin::ops
