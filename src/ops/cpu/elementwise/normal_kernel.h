// SPDX-License-Identifier: Apache-2.0
// Standard normals of a Philox stream in bulk, as plain pointers, and their table per instruction set; torch-free.
#pragma once

#include <cstdint>

#include "ops/base/instruction_set.h"

namespace welkin::ops {

inline constexpr int64_t kNormalBlocks = 16;  // Philox blocks, of four numbers each, per call

struct NormalKernel {
  // out[0, 64) = scale times the numbers of blocks [first, first + 16) of stream `key`, as in core/philox.h's normal_pair,
  // rounded to float. Logarithm and sines are ours, not the C library's, and may differ in a double's last bits. Elements
  // so near to the middle between two floats that this could matter are listed in `doubtful` (room for 64). Returns their
  // number.
  int64_t (*normals)(uint64_t key, uint64_t first, double scale, float* out, int32_t* doubtful);
};

const NormalKernel& normal_kernel_portable();
const NormalKernel& normal_kernel_avx2();    // x86-64 only
const NormalKernel& normal_kernel_avx512();  // x86-64 only

const NormalKernel& normal_kernel(InstructionSet set);

}  // namespace welkin::ops
