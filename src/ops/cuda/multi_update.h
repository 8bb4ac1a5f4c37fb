// SPDX-License-Identifier: Apache-2.0
// Launches of the optimizer updates' CUDA kernels, on raw pointers and without torch, so that nvcc parses little. They
// return cudaGetLastError of the launch. All pointers are on the stream's device.
#pragma once

#include <cuda_runtime_api.h>

#include "ops/arithmetic/device_update_kernel.h"

namespace welkin::ops {

// Pointers to single floats.
struct ScalarPointers {
  const float* rate = nullptr;
  const float* gradient_scale = nullptr;
  const float* found_inf = nullptr;
  const float* steps = nullptr;  // null for sgd
};

cudaError_t prepare_update(const AdamSettings& settings, const ScalarPointers& scalars, PreparedRule<AdamRule>* out,
                           cudaStream_t stream);
cudaError_t prepare_update(const SgdSettings& settings, const ScalarPointers& scalars, PreparedRule<SgdRule>* out,
                           cudaStream_t stream);
cudaError_t launch_update(const UpdateTable& table, const PreparedRule<AdamRule>* rule, cudaStream_t stream);
cudaError_t launch_update(const UpdateTable& table, const PreparedRule<SgdRule>* rule, cudaStream_t stream);

// One sum of squared gradients per piece of the table.
cudaError_t launch_square_sums(const UpdateTable& table, double* partials, cudaStream_t stream);
// norm = sqrt(sum of partials).
cudaError_t launch_norm(const double* partials, int64_t count, float* norm, cudaStream_t stream);

}  // namespace welkin::ops
