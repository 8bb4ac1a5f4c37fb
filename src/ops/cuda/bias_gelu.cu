// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels of ops/bias_gelu_kernel.h: a block per row forward; backward a block per 32 columns of a chunk of rows.
#include "ops/cuda/bias_gelu.h"

namespace welkin::ops {
namespace {

constexpr int kGeluThreads = 256;
constexpr int64_t kMostGeluBlocks = 65536;

template <typename Low>
__global__ void gelu_forward_kernel(GeluForward<Low> call) {
  for (int64_t row = blockIdx.x; row < call.rows; row += gridDim.x) {
    gelu_share(call, row, static_cast<int>(threadIdx.x), kGeluThreads);
  }
}

template <typename Low>
__global__ void gelu_backward_kernel(GeluBackward<Low> call, float* partials) {
  __shared__ float shares[kGeluRows][kGeluLanes];
  const int lane = static_cast<int>(threadIdx.x), first = static_cast<int>(threadIdx.y);
  const int64_t column = blockIdx.x * int64_t{kGeluLanes} + lane, chunk = blockIdx.y;
  if (column < call.width) shares[first][lane] = gelu_backward_share(call, chunk, column, first);
  __syncthreads();
  if (first != 0 || column >= call.width) return;
  float total = 0;
  for (const auto& row : shares) total += row[lane];
  partials[chunk * call.width + column] = total;
}

__global__ void gelu_bias_kernel(const float* partials, int64_t chunks, int64_t width, float* of_bias) {
  const int64_t column = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (column < width) of_bias[column] = gelu_bias_total(partials, chunks, width, column);
}

}  // namespace

template <typename Low>
cudaError_t launch_gelu_forward(const GeluForward<Low>& call, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(call.rows < kMostGeluBlocks ? call.rows : kMostGeluBlocks);
  gelu_forward_kernel<<<blocks, kGeluThreads, 0, stream>>>(call);
  return cudaGetLastError();
}

template <typename Low>
cudaError_t launch_gelu_backward(const GeluBackward<Low>& call, float* partials, float* of_bias, cudaStream_t stream) {
  constexpr unsigned kThreads = 128;
  const int64_t chunks = gelu_chunks(call.rows);
  const auto columns = static_cast<unsigned>((call.width + kGeluLanes - 1) / kGeluLanes);
  gelu_backward_kernel<<<dim3(columns, static_cast<unsigned>(chunks)), dim3(kGeluLanes, kGeluRows), 0, stream>>>(call, partials);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  const auto blocks = static_cast<unsigned>((call.width + kThreads - 1) / kThreads);
  gelu_bias_kernel<<<blocks, kThreads, 0, stream>>>(partials, chunks, call.width, of_bias);
  return cudaGetLastError();
}

template cudaError_t launch_gelu_forward(const GeluForward<float>&, cudaStream_t);
template cudaError_t launch_gelu_forward(const GeluForward<__half>&, cudaStream_t);
template cudaError_t launch_gelu_forward(const GeluForward<__nv_bfloat16>&, cudaStream_t);
template cudaError_t launch_gelu_backward(const GeluBackward<float>&, float*, float*, cudaStream_t);
template cudaError_t launch_gelu_backward(const GeluBackward<__half>&, float*, float*, cudaStream_t);
template cudaError_t launch_gelu_backward(const GeluBackward<__nv_bfloat16>&, float*, float*, cudaStream_t);

}  // namespace welkin::ops
