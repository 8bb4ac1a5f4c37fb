// SPDX-License-Identifier: Apache-2.0
// The launch of the CUDA kernel of welkin::crop_samples, on raw pointers and without torch, so that nvcc parses little.
#pragma once

#include <cuda_runtime_api.h>

#include "ops/arithmetic/sample_crop_kernel.h"

namespace welkin::ops {

enum class CropType { Float32, Float16, Bfloat16 };

struct CropLaunch {
  CropSource source;
  CropTarget target;
  const CropPlace* place = nullptr;
  const int64_t* channel = nullptr;
  const CropOp* op = nullptr;
  const void* from = nullptr;
  void* to = nullptr;
  CropType from_type = CropType::Float32, to_type = CropType::Float32;
};

inline constexpr int64_t kMaxCropRows = int64_t{1} << 31;  // of the output, all samples and channels together

// Launches on the stream; all pointers are on its device. Returns cudaGetLastError of the launch.
cudaError_t launch_crop(const CropLaunch& launch, cudaStream_t stream);

}  // namespace welkin::ops
