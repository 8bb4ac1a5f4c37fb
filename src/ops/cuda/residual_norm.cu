// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels of ops/residual_norm.h: a warp per row, and for the gradients of weight and bias a block per 32 columns of a
// chunk of rows.
#include "ops/cuda/residual_norm.h"

namespace welkin::ops {
namespace {

constexpr int64_t kMostNormBlocks = 65536;

// The same bits in every lane: a sum of two does not depend on their order.
__device__ float lane_sum(float value) {
  for (int distance = kNormLanes / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(0xFFFFFFFFU, value, distance);
  return value;
}

template <typename Low>
__global__ void norm_forward_kernel(NormForward<Low> call) {
  const int lane = static_cast<int>(threadIdx.x);
  for (int64_t row = blockIdx.x * int64_t{kNormRows} + threadIdx.y; row < call.rows; row += gridDim.x * int64_t{kNormRows}) {
    const float mean = lane_sum(add_share(call, row, lane)) / static_cast<float>(call.width);
    const float rstd = rstd_of(lane_sum(deviation_share(call, row, mean, lane)), call.width, call.epsilon);
    norm_share(call, row, mean, rstd, lane);
  }
}

template <typename Low>
__global__ void norm_backward_kernel(NormBackward<Low> call) {
  const int lane = static_cast<int>(threadIdx.x);
  for (int64_t row = blockIdx.x * int64_t{kNormRows} + threadIdx.y; row < call.rows; row += gridDim.x * int64_t{kNormRows}) {
    NormSums sums = gradient_share(call, row, lane);
    sums = {lane_sum(sums.plain), lane_sum(sums.scaled)};
    backward_share(call, row, sums, lane);
  }
}

template <typename Low>
__global__ void norm_columns_kernel(NormBackward<Low> call, float* partials) {
  __shared__ ColumnSums shares[kNormRows][kNormLanes];
  const int lane = static_cast<int>(threadIdx.x), first = static_cast<int>(threadIdx.y);
  const int64_t column = blockIdx.x * int64_t{kNormLanes} + lane, chunk = blockIdx.y;
  if (column < call.width) shares[first][lane] = column_share(call, chunk, column, first);
  __syncthreads();
  if (first != 0 || column >= call.width) return;
  ColumnSums total;
  for (const auto& row : shares) {
    total.weight += row[lane].weight;
    total.bias += row[lane].bias;
  }
  partials[chunk * 2 * call.width + column] = total.weight;
  partials[(chunk * 2 + 1) * call.width + column] = total.bias;
}

__global__ void norm_total_kernel(const float* partials, int64_t chunks, int64_t width, float* of_parameters) {
  const int64_t column = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  const int which = static_cast<int>(blockIdx.y);
  if (column < width) of_parameters[which * width + column] = chunk_total(partials, chunks, width, which, column);
}

unsigned blocks_for_rows(int64_t rows) {
  const int64_t wanted = (rows + kNormRows - 1) / kNormRows;
  return static_cast<unsigned>(wanted < kMostNormBlocks ? wanted : kMostNormBlocks);
}

}  // namespace

template <typename Low>
cudaError_t launch_norm_forward(const NormForward<Low>& call, cudaStream_t stream) {
  norm_forward_kernel<<<blocks_for_rows(call.rows), dim3(kNormLanes, kNormRows), 0, stream>>>(call);
  return cudaGetLastError();
}

template <typename Low>
cudaError_t launch_norm_backward(const NormBackward<Low>& call, cudaStream_t stream) {
  norm_backward_kernel<<<blocks_for_rows(call.rows), dim3(kNormLanes, kNormRows), 0, stream>>>(call);
  return cudaGetLastError();
}

template <typename Low>
cudaError_t launch_norm_parameters(const NormBackward<Low>& call, float* partials, float* of_parameters, cudaStream_t stream) {
  constexpr unsigned kThreads = 128;
  const int64_t chunks = norm_chunks(call.rows);
  const auto columns = static_cast<unsigned>((call.width + kNormLanes - 1) / kNormLanes);
  norm_columns_kernel<<<dim3(columns, static_cast<unsigned>(chunks)), dim3(kNormLanes, kNormRows), 0, stream>>>(call, partials);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  const auto blocks = static_cast<unsigned>((call.width + kThreads - 1) / kThreads);
  norm_total_kernel<<<dim3(blocks, 2), kThreads, 0, stream>>>(partials, chunks, call.width, of_parameters);
  return cudaGetLastError();
}

template cudaError_t launch_norm_forward(const NormForward<float>&, cudaStream_t);
template cudaError_t launch_norm_forward(const NormForward<__half>&, cudaStream_t);
template cudaError_t launch_norm_forward(const NormForward<__nv_bfloat16>&, cudaStream_t);
template cudaError_t launch_norm_backward(const NormBackward<float>&, cudaStream_t);
template cudaError_t launch_norm_backward(const NormBackward<__half>&, cudaStream_t);
template cudaError_t launch_norm_backward(const NormBackward<__nv_bfloat16>&, cudaStream_t);
template cudaError_t launch_norm_parameters(const NormBackward<float>&, float*, float*, cudaStream_t);
template cudaError_t launch_norm_parameters(const NormBackward<__half>&, float*, float*, cudaStream_t);
template cudaError_t launch_norm_parameters(const NormBackward<__nv_bfloat16>&, float*, float*, cudaStream_t);

}  // namespace welkin::ops
