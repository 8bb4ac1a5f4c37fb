// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels of ops/arithmetic/bias_kink_kernel.h. A block has as many rows under way as its threads make of them, a pack
// of columns each: boxes have 64 channels where they are large and 512 where they are small.
#include "ops/cuda/bias_kink.h"
#include "ops/cuda/chunk_sums.cuh"
#include "ops/cuda/pack.cuh"

namespace welkin::ops {
namespace {

constexpr int kKinkThreads = 256;
constexpr int64_t kMostKinkBlocks = 65536;

// Threads on a row, and rows that a block has under way.
struct KinkShape {
  int lanes, rows;
};

template <int N>
constexpr KinkShape kink_shape(int64_t width) {
  const int64_t packs = (width + N - 1) / N;
  const int lanes = packs < kKinkThreads ? static_cast<int>(packs) : kKinkThreads;
  return {lanes, kKinkThreads / lanes};
}

template <int N, typename Low>
__global__ void __launch_bounds__(kKinkThreads) kink_forward_kernel(KinkForward<Low> call) {
  const KinkShape shape = kink_shape<N>(call.width);
  const int lane = static_cast<int>(threadIdx.x) % shape.lanes, first = static_cast<int>(threadIdx.x) / shape.lanes;
  if (first >= shape.rows) return;
  for (int64_t column = int64_t{lane} * N; column < call.width; column += int64_t{shape.lanes} * N) {
    const auto bias = load_pack<N>(call.bias + column);
    for (int64_t row = blockIdx.x * int64_t{shape.rows} + first; row < call.rows; row += gridDim.x * int64_t{shape.rows}) {
      auto x = load_pack<N>(call.x + row * call.width + column);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const float sum = static_cast<float>(x.lane[k]) + bias.lane[k];
        x.lane[k] = static_cast<Low>(sum > 0 ? sum : below_kink(sum, call.slope));
      }
      store_pack(x, call.x + row * call.width + column);
    }
  }
}

// A thread's N columns in every shape.rows-th row of the chunk, from its row `first` on; their gradients' sums, before they are
// rounded.
template <int N, typename Low>
__device__ __forceinline__ void kink_backward_share(const KinkBackward<Low>& call, int64_t chunk, int64_t column, int first,
                                                    int step, float (&sums)[N]) {
  const int64_t length = kink_chunk(call.rows), begin = chunk * length;
  const int64_t end = begin + length < call.rows ? begin + length : call.rows;
  for (int64_t row = begin + first; row < end; row += step) {
    const int64_t i = row * call.width + column;
    const auto out = load_pack<N>(call.out + i);
    const auto of_out = load_pack<N>(call.of_out + i);
    Pack<Low, N> of_x;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const auto given = static_cast<float>(of_out.lane[k]);
      const float gradient = static_cast<float>(out.lane[k]) > 0 ? given : gradient_below_kink(given, call.slope);
      of_x.lane[k] = static_cast<Low>(gradient);
      sums[k] += gradient;
    }
    store_pack(of_x, call.of_x + i);
  }
}

template <int N, typename Low>
__global__ void __launch_bounds__(kKinkThreads) kink_backward_kernel(KinkBackward<Low> call, float* partials) {
  __shared__ float shares[N][kKinkThreads];
  const KinkShape shape = kink_shape<N>(call.width);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % shape.lanes, first = thread / shape.lanes;
  const int64_t column = (blockIdx.y * int64_t{shape.lanes} + lane) * N, chunk = blockIdx.x;
  float sums[N] = {};
  if (first < shape.rows && column < call.width) kink_backward_share(call, chunk, column, first, shape.rows, sums);
#pragma unroll
  for (int k = 0; k < N; ++k) shares[k][thread] = sums[k];
  __syncthreads();
  if (first != 0 || column >= call.width) return;
  for (int k = 0; k < N; ++k) {
    float total = 0;
    for (int row = 0; row < shape.rows; ++row) total += shares[k][row * shape.lanes + lane];
    partials[chunk * call.width + column + k] = total;
  }
}

template <int N, typename Low>
cudaError_t launch_forward(const KinkForward<Low>& call, cudaStream_t stream) {
  const int64_t wanted = (call.rows + kink_shape<N>(call.width).rows - 1) / kink_shape<N>(call.width).rows;
  const auto grid = static_cast<unsigned>(wanted < kMostKinkBlocks ? wanted : kMostKinkBlocks);
  kink_forward_kernel<N><<<grid, kKinkThreads, 0, stream>>>(call);
  return cudaGetLastError();
}

template <int N, typename Low>
cudaError_t launch_backward(const KinkBackward<Low>& call, float* partials, cudaStream_t stream) {
  const int64_t columns = int64_t{kink_shape<N>(call.width).lanes} * N;
  const dim3 grid(static_cast<unsigned>(kink_chunks(call.rows)), static_cast<unsigned>((call.width + columns - 1) / columns));
  kink_backward_kernel<N><<<grid, kKinkThreads, 0, stream>>>(call, partials);
  return cudaGetLastError();
}

}  // namespace

template <typename Low>
cudaError_t launch_kink_forward(const KinkForward<Low>& call, cudaStream_t stream) {
  constexpr int kPack = 16 / sizeof(Low);
  return are_of_packs<kPack>(call.width, call.x, call.bias) ? launch_forward<kPack>(call, stream)
                                                            : launch_forward<1>(call, stream);
}

template <typename Low>
cudaError_t launch_kink_backward(const KinkBackward<Low>& call, float* partials, float* of_bias, cudaStream_t stream) {
  constexpr int kPack = 16 / sizeof(Low);
  const cudaError_t error = are_of_packs<kPack>(call.width, call.of_out, call.out, call.of_x)
                                ? launch_backward<kPack>(call, partials, stream)
                                : launch_backward<1>(call, partials, stream);
  return error == cudaSuccess ? launch_chunk_sums(partials, kink_chunks(call.rows), call.width, of_bias, stream) : error;
}

template cudaError_t launch_kink_forward(const KinkForward<float>&, cudaStream_t);
template cudaError_t launch_kink_forward(const KinkForward<__half>&, cudaStream_t);
template cudaError_t launch_kink_forward(const KinkForward<__nv_bfloat16>&, cudaStream_t);
template cudaError_t launch_kink_backward(const KinkBackward<float>&, float*, float*, cudaStream_t);
template cudaError_t launch_kink_backward(const KinkBackward<__half>&, float*, float*, cudaStream_t);
template cudaError_t launch_kink_backward(const KinkBackward<__nv_bfloat16>&, float*, float*, cudaStream_t);

}  // namespace welkin::ops
