// SPDX-License-Identifier: Apache-2.0
// Launches of error sums, on raw pointers and without torch, so that nvcc parses little. They return cudaGetLastError of
// the launch.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "ops/arithmetic/error_sums_kernel.h"

namespace welkin::ops {

// partials (B, error_chunks(rows)) pairs, sums (B, 2).
template <typename Low>
cudaError_t launch_error_sums(const ErrorCall<Low>& call, ErrorPair<float>* partials, float* sums, cudaStream_t stream);
template <typename Low>
cudaError_t launch_error_backward(const ErrorBackward<Low>& backward, cudaStream_t stream);

}  // namespace welkin::ops
