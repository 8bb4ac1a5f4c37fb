// SPDX-License-Identifier: Apache-2.0
// The launch of the CUDA kernel of welkin::cut_samples, on raw pointers: no torch, so that nvcc parses little.
#pragma once

#include <cuda_runtime_api.h>

#include "ops/arithmetic/sample_cut_kernel.h"

namespace welkin::ops {

enum class CutType { Float32, Float16, Bfloat16 };

struct CutLaunch {
  CutSource source;
  CutTarget target;
  const CutPlace* place = nullptr;
  const int64_t* channel = nullptr;
  const CutOp* op = nullptr;
  const void* from = nullptr;
  void* to = nullptr;
  CutType from_type = CutType::Float32, to_type = CutType::Float32;
};

inline constexpr int64_t kMostCutRows = int64_t{1} << 31;  // of the output, all samples and channels together

// On the stream; all pointers are of its device. What cudaGetLastError says of the launch.
cudaError_t launch_cut(const CutLaunch& launch, cudaStream_t stream);

}  // namespace welkin::ops
