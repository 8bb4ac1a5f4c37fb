// SPDX-License-Identifier: Apache-2.0
// Launches of ops/arithmetic/bias_leaky_relu_kernel.h, on raw pointers and without torch, so that nvcc parses little. They
// return cudaGetLastError of the launch.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "ops/arithmetic/bias_leaky_relu_kernel.h"

namespace welkin::ops {

template <typename Low>
cudaError_t launch_leaky_relu_forward(const LeakyReluForward<Low>& call, cudaStream_t stream);
// partials (leaky_relu_chunks(rows), width), grad_bias (width): the gradient of the bias.
template <typename Low>
cudaError_t launch_leaky_relu_backward(const LeakyReluBackward<Low>& call, float* partials, float* grad_bias,
                                       cudaStream_t stream);

}  // namespace welkin::ops
