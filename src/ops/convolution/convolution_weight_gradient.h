// SPDX-License-Identifier: Apache-2.0
// Weight gradients for kernels that read one side channel by channel (TransposedOuter): the coarse grid's. Each of its voxels
// meets a fine voxel in every tap, so it is transposed once for a row of taps and a panel of fine channels.
#pragma once

#include "ops/convolution/convolution_cpu.h"
#include "ops/cpu/convolution/convolution_kernel.h"

namespace welkin::ops {

// Like sum_tap_outers.
template <typename T>
void sum_transposed_outers(const TransposedOuter<T>& kernel, const ConvolutionGeometry& convolution, Grid left_grid,
                           const BoxView<T>& left, const BoxView<T>& right, const TapSums& sum);

}  // namespace welkin::ops
