// SPDX-License-Identifier: Apache-2.0
// Launches of box_blocks.cu. Pointers are on the device.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "ops/arithmetic/box_blocks_kernel.h"

namespace welkin::ops {

template <typename Low>
cudaError_t launch_to_blocks(const ToBlocks<Low>& call, cudaStream_t stream);
template <typename Low>
cudaError_t launch_from_blocks(const FromBlocks<Low>& call, cudaStream_t stream);

}  // namespace welkin::ops
