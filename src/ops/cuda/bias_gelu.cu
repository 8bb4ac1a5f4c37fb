// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels of ops/arithmetic/bias_gelu_kernel.h: forward one block per row; backward one block per 32 packs of columns
// of a chunk of rows.
#include "ops/cuda/bias_gelu.h"
#include "ops/cuda/chunk_sums.cuh"
#include "ops/cuda/pack.cuh"

namespace welkin::ops {
namespace {

constexpr int kMostGeluThreads = 256;
constexpr int64_t kMostGeluBlocks = 65536;
constexpr int kGeluLanes = 32;  // of a block of the backward pass
constexpr int kGeluRows = 8;    // rows that it processes at a time

// The standard normal distribution and its density.
struct Normal {
  float below, density;
};

// For results that are rounded to 16 bits: one exponential gives both; erff and expf would take longer than the memory.
// Abramowitz and Stegun, 7.1.26, for the smaller tail: the error is at most 7.5e-8.
template <typename Low>
__device__ __forceinline__ Normal normal_at(float x) {
  const float exponential = __expf(-0.5F * x * x);
  const float t = __fdividef(1.0F, 1.0F + 0.23164189F * fabsf(x));  // 0.3275911 / sqrt(2)
  const float series = t * (0.254829592F + t * (-0.284496736F + t * (1.421413741F + t * (-1.453152027F + t * 1.061405429F))));
  const float tail = 0.5F * series * exponential;
  return {x < 0 ? tail : 1 - tail, 0.39894228F * exponential};
}
template <>
__device__ __forceinline__ Normal normal_at<float>(float x) {
  return {0.5F * (1 + erff(x * 0.70710678F)), 0.39894228F * expf(-0.5F * x * x)};
}

template <int N, typename Low>
__global__ void gelu_forward_kernel(GeluForward<Low> call) {
  for (int64_t row = blockIdx.x; row < call.rows; row += gridDim.x) {
    for (int64_t column = int64_t{threadIdx.x} * N; column < call.width; column += int64_t{blockDim.x} * N) {
      const auto x = load_pack<N>(call.x + row * call.width + column);
      const auto bias = load_pack<N>(call.bias + column);
      Pack<Low, N> out;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const float in = static_cast<float>(x.lane[k]) + bias.lane[k];
        out.lane[k] = static_cast<Low>(in * normal_at<Low>(in).below);
      }
      store_pack(out, call.out + row * call.width + column);
    }
  }
}

// A lane's N columns in every kGeluRows-th row of the chunk, starting at row `first`, and the sums of their gradients before
// rounding.
template <int N, typename Low>
__device__ __forceinline__ void gelu_backward_share(const GeluBackward<Low>& call, int64_t chunk, int64_t column, int first,
                                                    float (&sums)[N]) {
  const int64_t length = gelu_chunk(call.rows), begin = chunk * length;
  const int64_t end = begin + length < call.rows ? begin + length : call.rows;
  const auto bias = load_pack<N>(call.bias + column);
  for (int64_t row = begin + first; row < end; row += kGeluRows) {
    const int64_t i = row * call.width + column;
    const auto x = load_pack<N>(call.x + i);
    const auto grad_out = load_pack<N>(call.grad_out + i);
    Pack<Low, N> out, grad_x;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const float in = static_cast<float>(x.lane[k]) + bias.lane[k];
      const Normal normal = normal_at<Low>(in);
      const float gradient = static_cast<float>(grad_out.lane[k]) * (normal.below + in * normal.density);
      out.lane[k] = static_cast<Low>(in * normal.below);
      grad_x.lane[k] = static_cast<Low>(gradient);
      sums[k] += gradient;
    }
    store_pack(out, call.out + i);
    store_pack(grad_x, call.grad_x + i);
  }
}

template <int N, typename Low>
__global__ void gelu_backward_kernel(GeluBackward<Low> call, float* partials) {
  __shared__ float shares[kGeluRows][N][kGeluLanes];
  const int lane = static_cast<int>(threadIdx.x), first = static_cast<int>(threadIdx.y);
  const int64_t column = (blockIdx.x * int64_t{kGeluLanes} + lane) * N, chunk = blockIdx.y;
  float sums[N] = {};
  if (column < call.width) gelu_backward_share(call, chunk, column, first, sums);
#pragma unroll
  for (int k = 0; k < N; ++k) shares[first][k][lane] = sums[k];
  __syncthreads();
  if (first != 0 || column >= call.width) return;
  for (int k = 0; k < N; ++k) {
    float total = 0;
    for (const auto& row : shares) total += row[k][lane];
    partials[chunk * call.width + column + k] = total;
  }
}

// Uses as many warps as a row of packs needs.
template <int N, typename Low>
cudaError_t launch_forward(const GeluForward<Low>& call, cudaStream_t stream) {
  const int64_t threads = ((call.width + N - 1) / N + 31) / 32 * 32;
  const auto block = static_cast<unsigned>(threads < kMostGeluThreads ? threads : kMostGeluThreads);
  const auto grid = static_cast<unsigned>(call.rows < kMostGeluBlocks ? call.rows : kMostGeluBlocks);
  gelu_forward_kernel<N><<<grid, block, 0, stream>>>(call);
  return cudaGetLastError();
}

template <int N, typename Low>
cudaError_t launch_backward(const GeluBackward<Low>& call, float* partials, cudaStream_t stream) {
  constexpr int64_t kColumns = int64_t{kGeluLanes} * N;
  const dim3 grid(static_cast<unsigned>((call.width + kColumns - 1) / kColumns), static_cast<unsigned>(gelu_chunks(call.rows)));
  gelu_backward_kernel<N><<<grid, dim3(kGeluLanes, kGeluRows), 0, stream>>>(call, partials);
  return cudaGetLastError();
}

}  // namespace

template <typename Low>
cudaError_t launch_gelu_forward(const GeluForward<Low>& call, cudaStream_t stream) {
  constexpr int kPack = 16 / sizeof(Low);
  return are_of_packs<kPack>(call.width, call.x, call.bias, call.out) ? launch_forward<kPack>(call, stream)
                                                                      : launch_forward<1>(call, stream);
}

template <typename Low>
cudaError_t launch_gelu_backward(const GeluBackward<Low>& call, float* partials, float* grad_bias, cudaStream_t stream) {
  constexpr int kPack = 4;  // wider blocks would be too few
  const cudaError_t error = are_of_packs<kPack>(call.width, call.grad_out, call.x, call.bias, call.out, call.grad_x)
                                ? launch_backward<kPack>(call, partials, stream)
                                : launch_backward<1>(call, partials, stream);
  return error == cudaSuccess ? launch_chunk_sums(partials, gelu_chunks(call.rows), call.width, grad_bias, stream) : error;
}

template cudaError_t launch_gelu_forward(const GeluForward<float>&, cudaStream_t);
template cudaError_t launch_gelu_forward(const GeluForward<__half>&, cudaStream_t);
template cudaError_t launch_gelu_forward(const GeluForward<__nv_bfloat16>&, cudaStream_t);
template cudaError_t launch_gelu_backward(const GeluBackward<float>&, float*, float*, cudaStream_t);
template cudaError_t launch_gelu_backward(const GeluBackward<__half>&, float*, float*, cudaStream_t);
template cudaError_t launch_gelu_backward(const GeluBackward<__nv_bfloat16>&, float*, float*, cudaStream_t);

}  // namespace welkin::ops
