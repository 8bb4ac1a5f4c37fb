// SPDX-License-Identifier: Apache-2.0
// The last step of sums over rows: adds up the blocks' chunks in a fixed order.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace welkin::ops {
namespace {

constexpr int kSumLanes = 32;  // columns of a block
constexpr int kSumRows = 16;   // chunks that it adds at a time

// partials (chunks, columns), out (columns).
__global__ void chunk_sums_kernel(const float* partials, int64_t chunks, int64_t columns, float* out) {
  __shared__ float shares[kSumRows][kSumLanes];
  const int lane = static_cast<int>(threadIdx.x), first = static_cast<int>(threadIdx.y);
  const int64_t column = blockIdx.x * int64_t{kSumLanes} + lane;
  float sum = 0;
  for (int64_t chunk = first; chunk < chunks && column < columns; chunk += kSumRows) sum += partials[chunk * columns + column];
  shares[first][lane] = sum;
  __syncthreads();
  if (first != 0 || column >= columns) return;
  float total = 0;
  for (const auto& row : shares) total += row[lane];
  out[column] = total;
}

inline cudaError_t launch_chunk_sums(const float* partials, int64_t chunks, int64_t columns, float* out, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((columns + kSumLanes - 1) / kSumLanes);
  chunk_sums_kernel<<<blocks, dim3(kSumLanes, kSumRows), 0, stream>>>(partials, chunks, columns, out);
  return cudaGetLastError();
}

}  // namespace
}  // namespace welkin::ops
