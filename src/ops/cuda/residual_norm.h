// SPDX-License-Identifier: Apache-2.0
// Launches of the residual sum with its layer norm, on raw pointers and without torch, so that nvcc parses little. They
// return cudaGetLastError of the launch.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "ops/arithmetic/residual_norm_kernel.h"

namespace welkin::ops {

template <typename Low>
cudaError_t launch_norm_forward(const NormForward<Low>& call, cudaStream_t stream);
// partials (norm_chunks(rows), 2, width), of_parameters (2, width): gradients of weight and bias.
template <typename Low>
cudaError_t launch_norm_backward(const NormBackward<Low>& call, float* partials, float* of_parameters, cudaStream_t stream);

}  // namespace welkin::ops
