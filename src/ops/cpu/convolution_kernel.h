// SPDX-License-Identifier: Apache-2.0
// The two products that a convolution over channels-last boxes consists of, tap by tap, as plain pointers, and their table per
// instruction set; torch-free. A tap joins voxels of one grid to voxels of another; each voxel is a vector of channels. Only
// pairs that exist are listed, so taps on the padding cost nothing, and nothing is copied into columns.
#pragma once

#include <cstdint>

#include "ops/instruction_set.h"

namespace welkin::ops {

inline constexpr int64_t kChannelPanel = 64;     // channels of the result that a call computes at most
inline constexpr int64_t kChannelMultiple = 16;  // widths are multiples of this
inline constexpr int64_t kDepthBlock = 256;      // channels of the operand that a call sums over at most

struct ConvolutionKernel {
  // result[i][0, width) += left[i][0, depth) times right (depth, width), for i in [0, count).
  void (*add_rows)(const float* const* left, float* const* result, int64_t count, const float* right, int64_t depth,
                   int64_t width);
  // sum (rows, width) at `stride` = or += the sum over i of left[i][0, rows) times right[i][0, width).
  void (*sum_outer)(const float* const* left, const float* const* right, int64_t count, float* sum, int64_t stride, int64_t rows,
                    int64_t width, bool add);
};

const ConvolutionKernel& convolution_kernel_portable();
const ConvolutionKernel& convolution_kernel_avx2();    // x86-64 only
const ConvolutionKernel& convolution_kernel_avx512();  // x86-64 only

const ConvolutionKernel& convolution_kernel(InstructionSet set);

}  // namespace welkin::ops
