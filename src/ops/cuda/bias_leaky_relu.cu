// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels of ops/arithmetic/bias_leaky_relu_kernel.h. Each thread takes a pack of columns, and a block as many rows at
// a time as its threads fill: boxes have 64 channels where they are large and 512 where they are small.
#include "ops/cuda/bias_leaky_relu.h"
#include "ops/cuda/chunk_sums.cuh"
#include "ops/cuda/pack.cuh"

namespace welkin::ops {
namespace {

constexpr int kLeakyReluThreads = 256;
constexpr int64_t kMaxLeakyReluBlocks = 65536;

// Threads per row, and rows that a block processes at a time.
struct LeakyReluShape {
  int lanes, rows;
};

template <int N>
constexpr LeakyReluShape leaky_relu_shape(int64_t width) {
  const int64_t packs = (width + N - 1) / N;
  const int lanes = packs < kLeakyReluThreads ? static_cast<int>(packs) : kLeakyReluThreads;
  return {lanes, kLeakyReluThreads / lanes};
}

template <int N, typename Low>
__global__ void __launch_bounds__(kLeakyReluThreads) leaky_relu_forward_kernel(LeakyReluForward<Low> call) {
  const LeakyReluShape shape = leaky_relu_shape<N>(call.width);
  const int lane = static_cast<int>(threadIdx.x) % shape.lanes, first = static_cast<int>(threadIdx.x) / shape.lanes;
  if (first >= shape.rows) return;
  for (int64_t column = int64_t{lane} * N; column < call.width; column += int64_t{shape.lanes} * N) {
    const auto bias = load_pack<N>(call.bias + column);
    for (int64_t row = blockIdx.x * int64_t{shape.rows} + first; row < call.rows; row += gridDim.x * int64_t{shape.rows}) {
      auto x = load_pack<N>(call.x + row * call.width + column);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const float sum = static_cast<float>(x.lane[k]) + bias.lane[k];
        x.lane[k] = static_cast<Low>(sum > 0 ? sum : leaky_relu_below(sum, call.slope));
      }
      store_pack(x, call.x + row * call.width + column);
    }
  }
}

// A thread's N columns in every shape.rows-th row of the chunk, starting at row `first`, and the sums of their gradients before
// rounding.
template <int N, typename Low>
__device__ __forceinline__ void leaky_relu_backward_share(const LeakyReluBackward<Low>& call, int64_t chunk, int64_t column,
                                                          int first, int step, float (&sums)[N]) {
  const int64_t length = leaky_relu_chunk(call.rows), begin = chunk * length;
  const int64_t end = begin + length < call.rows ? begin + length : call.rows;
  for (int64_t row = begin + first; row < end; row += step) {
    const int64_t i = row * call.width + column;
    const auto grad_out = load_pack<N>(call.grad_out + i);
    if (call.grad_x == nullptr) {
#pragma unroll
      for (int k = 0; k < N; ++k) sums[k] += static_cast<float>(grad_out.lane[k]);
      continue;
    }
    const auto out = load_pack<N>(call.out + i);
    Pack<Low, N> grad_x;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const auto given = static_cast<float>(grad_out.lane[k]);
      const float gradient = static_cast<float>(out.lane[k]) > 0 ? given : leaky_relu_gradient_below(given, call.slope);
      grad_x.lane[k] = static_cast<Low>(gradient);
      sums[k] += gradient;
    }
    store_pack(grad_x, call.grad_x + i);
  }
}

template <int N, typename Low>
__global__ void __launch_bounds__(kLeakyReluThreads) leaky_relu_backward_kernel(LeakyReluBackward<Low> call, float* partials) {
  __shared__ float shares[N][kLeakyReluThreads];
  const LeakyReluShape shape = leaky_relu_shape<N>(call.width);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % shape.lanes, first = thread / shape.lanes;
  const int64_t column = (blockIdx.y * int64_t{shape.lanes} + lane) * N, chunk = blockIdx.x;
  float sums[N] = {};
  if (first < shape.rows && column < call.width) leaky_relu_backward_share(call, chunk, column, first, shape.rows, sums);
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
cudaError_t launch_forward(const LeakyReluForward<Low>& call, cudaStream_t stream) {
  const int64_t wanted = (call.rows + leaky_relu_shape<N>(call.width).rows - 1) / leaky_relu_shape<N>(call.width).rows;
  const auto grid = static_cast<unsigned>(wanted < kMaxLeakyReluBlocks ? wanted : kMaxLeakyReluBlocks);
  leaky_relu_forward_kernel<N><<<grid, kLeakyReluThreads, 0, stream>>>(call);
  return cudaGetLastError();
}

template <int N, typename Low>
cudaError_t launch_backward(const LeakyReluBackward<Low>& call, float* partials, cudaStream_t stream) {
  const int64_t columns = int64_t{leaky_relu_shape<N>(call.width).lanes} * N;
  const dim3 grid(static_cast<unsigned>(leaky_relu_chunks(call.rows)),
                  static_cast<unsigned>((call.width + columns - 1) / columns));
  leaky_relu_backward_kernel<N><<<grid, kLeakyReluThreads, 0, stream>>>(call, partials);
  return cudaGetLastError();
}

}  // namespace

template <typename Low>
cudaError_t launch_leaky_relu_forward(const LeakyReluForward<Low>& call, cudaStream_t stream) {
  constexpr int kPack = 16 / sizeof(Low);
  return are_of_packs<kPack>(call.width, call.x, call.bias) ? launch_forward<kPack>(call, stream)
                                                            : launch_forward<1>(call, stream);
}

template <typename Low>
cudaError_t launch_leaky_relu_backward(const LeakyReluBackward<Low>& call, float* partials, float* grad_bias,
                                       cudaStream_t stream) {
  constexpr int kPack = 16 / sizeof(Low);
  const cudaError_t error = are_of_packs<kPack>(call.width, call.grad_out, call.out, call.grad_x)
                                ? launch_backward<kPack>(call, partials, stream)
                                : launch_backward<1>(call, partials, stream);
  return error == cudaSuccess ? launch_chunk_sums(partials, leaky_relu_chunks(call.rows), call.width, grad_bias, stream) : error;
}

template cudaError_t launch_leaky_relu_forward(const LeakyReluForward<float>&, cudaStream_t);
template cudaError_t launch_leaky_relu_forward(const LeakyReluForward<__half>&, cudaStream_t);
template cudaError_t launch_leaky_relu_forward(const LeakyReluForward<__nv_bfloat16>&, cudaStream_t);
template cudaError_t launch_leaky_relu_backward(const LeakyReluBackward<float>&, float*, float*, cudaStream_t);
template cudaError_t launch_leaky_relu_backward(const LeakyReluBackward<__half>&, float*, float*, cudaStream_t);
template cudaError_t launch_leaky_relu_backward(const LeakyReluBackward<__nv_bfloat16>&, float*, float*, cudaStream_t);

}  // namespace welkin::ops
