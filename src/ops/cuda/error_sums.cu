// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels of ops/arithmetic/error_sums_kernel.h: a block per chunk of a sample's rows, one warp per row; then one warp
// per sample.
#include "ops/cuda/error_sums.h"

namespace welkin::ops {
namespace {

constexpr int64_t kMostErrorSamples = 256;  // blocks of a launch; they loop over more samples

// Gives the same bits in every lane: a sum of two does not depend on their order.
template <typename Real>
__device__ ErrorPair<Real> lane_sums(ErrorPair<Real> value) {
  for (int distance = kErrorLanes / 2; distance > 0; distance /= 2) {
    value.first += __shfl_xor_sync(0xFFFFFFFFU, value.first, distance);
    value.second += __shfl_xor_sync(0xFFFFFFFFU, value.second, distance);
  }
  return value;
}

template <typename Low>
__global__ void error_partials_kernel(ErrorCall<Low> call, ErrorPair<float>* partials) {
  __shared__ float shares[kErrorRows][2];
  const int lane = static_cast<int>(threadIdx.x), first = static_cast<int>(threadIdx.y);
  for (int64_t sample = blockIdx.y; sample < call.size[0]; sample += gridDim.y) {
    const ErrorPair<float> share = lane_sums(error_share(call, sample, blockIdx.x, first, lane));
    if (lane == 0) {
      shares[first][0] = share.first;
      shares[first][1] = share.second;
    }
    __syncthreads();
    if (first == 0 && lane == 0) {
      ErrorPair<float> total;
      for (const auto& row : shares) {
        total.first += row[0];
        total.second += row[1];
      }
      partials[sample * gridDim.x + blockIdx.x] = total;
    }
    __syncthreads();  // before the partial sums of the next sample
  }
}

__global__ void error_totals_kernel(const ErrorPair<float>* partials, int64_t chunks, float* sums) {
  const ErrorPair<double> total = lane_sums(error_total_share(partials, chunks, blockIdx.x, static_cast<int>(threadIdx.x)));
  if (threadIdx.x != 0) return;
  sums[2 * int64_t{blockIdx.x}] = static_cast<float>(total.first);
  sums[2 * int64_t{blockIdx.x} + 1] = static_cast<float>(total.second);
}

template <typename Low>
__global__ void error_backward_kernel(ErrorBackward<Low> backward) {
  for (int64_t sample = blockIdx.y; sample < backward.call.size[0]; sample += gridDim.y) {
    error_backward_share(backward, sample, blockIdx.x, static_cast<int>(threadIdx.y), static_cast<int>(threadIdx.x));
  }
}

template <typename Low>
dim3 error_grid(const ErrorCall<Low>& call) {
  const int64_t samples = call.size[0] < kMostErrorSamples ? call.size[0] : kMostErrorSamples;
  return dim3(static_cast<unsigned>(error_chunks(error_rows(call))), static_cast<unsigned>(samples));
}

}  // namespace

template <typename Low>
cudaError_t launch_error_sums(const ErrorCall<Low>& call, ErrorPair<float>* partials, float* sums, cudaStream_t stream) {
  error_partials_kernel<<<error_grid(call), dim3(kErrorLanes, kErrorRows), 0, stream>>>(call, partials);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  const auto samples = static_cast<unsigned>(call.size[0]);
  error_totals_kernel<<<samples, kErrorLanes, 0, stream>>>(partials, error_chunks(error_rows(call)), sums);
  return cudaGetLastError();
}

template <typename Low>
cudaError_t launch_error_backward(const ErrorBackward<Low>& backward, cudaStream_t stream) {
  error_backward_kernel<<<error_grid(backward.call), dim3(kErrorLanes, kErrorRows), 0, stream>>>(backward);
  return cudaGetLastError();
}

template cudaError_t launch_error_sums(const ErrorCall<float>&, ErrorPair<float>*, float*, cudaStream_t);
template cudaError_t launch_error_sums(const ErrorCall<__half>&, ErrorPair<float>*, float*, cudaStream_t);
template cudaError_t launch_error_sums(const ErrorCall<__nv_bfloat16>&, ErrorPair<float>*, float*, cudaStream_t);
template cudaError_t launch_error_backward(const ErrorBackward<float>&, cudaStream_t);
template cudaError_t launch_error_backward(const ErrorBackward<__half>&, cudaStream_t);
template cudaError_t launch_error_backward(const ErrorBackward<__nv_bfloat16>&, cudaStream_t);

}  // namespace welkin::ops
