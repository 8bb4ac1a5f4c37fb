// SPDX-License-Identifier: Apache-2.0
// The launch of the CUDA kernel of welkin::philox_dropout, on raw pointers and without torch, so that nvcc parses little.
#pragma once

#include <cuda_runtime_api.h>

#include "ops/arithmetic/philox_mask.h"

namespace welkin::ops {

enum class MaskType { Float64, Float32, Float16, Bfloat16 };

struct MaskLaunch {
  MaskLayout layout;
  MaskRule rule;
  const int64_t* step = nullptr;    // one number
  const int64_t* sample = nullptr;  // one per sample
  const void* in = nullptr;
  void* out = nullptr;
  MaskType type = MaskType::Float32;
};

// Launches on the stream; all pointers are on its device. Returns cudaGetLastError of the launch.
cudaError_t launch_mask(const MaskLaunch& launch, cudaStream_t stream);

}  // namespace welkin::ops
