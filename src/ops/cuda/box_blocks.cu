// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels of ops/arithmetic/box_blocks_kernel.h: a block of threads per row, a pack of channels each.
#include "ops/arithmetic/bias_leaky_relu_kernel.h"
#include "ops/cuda/box_blocks.h"
#include "ops/cuda/pack.cuh"

namespace welkin::ops {
namespace {

constexpr int kBlocksThreads = 256;
// Accesses of a thread in flight: single accesses of 2 bytes would not saturate the memory.
template <int N>
constexpr int kBlocksAhead = N == 1  ? 4
                             : N < 8 ? 2
                                     : 1;
constexpr int64_t kMostBlocksRows = 1 << 20;  // blocks of a launch; they loop over more rows

template <int N, typename Low>
__global__ void __launch_bounds__(kBlocksThreads) to_blocks_kernel(ToBlocks<Low> call) {
  const auto items = static_cast<uint32_t>(block_packs(call.shape, N));
  for (int64_t row = blockIdx.x; row < block_rows(call.shape); row += gridDim.x) {
    for (uint32_t first = threadIdx.x; first < items; first += kBlocksThreads * kBlocksAhead<N>) {
      Pack<Low, N> values[kBlocksAhead<N>];
#pragma unroll
      for (int ahead = 0; ahead < kBlocksAhead<N>; ++ahead) {
        const uint32_t item = first + ahead * kBlocksThreads;
#pragma unroll
        for (int k = 0; k < N; ++k) values[ahead].lane[k] = static_cast<Low>(0.0F);
        const int64_t from = item < items ? place_in_box(call.shape, row, item, N) : -1;
        if (from >= 0) values[ahead] = load_pack<N>(call.box + from);
      }
#pragma unroll
      for (int ahead = 0; ahead < kBlocksAhead<N>; ++ahead) {
        const uint32_t item = first + ahead * kBlocksThreads;
        if (item < items) store_pack(values[ahead], call.blocks + (row * items + item) * N);
      }
    }
  }
}

template <int N, typename Low>
__device__ __forceinline__ void add_bias(Pack<Low, N>& values, const float* bias, float slope) {
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const float sum = static_cast<float>(values.lane[k]) + bias[k];
    values.lane[k] = static_cast<Low>(sum > 0 ? sum : leaky_relu_below(sum, slope));
  }
}

template <int N, typename Low>
__global__ void __launch_bounds__(kBlocksThreads) from_blocks_kernel(FromBlocks<Low> call) {
  const auto items = static_cast<uint32_t>(box_packs(call.shape, N));
  const auto packs = static_cast<uint32_t>(call.shape.channels / N);
  for (int64_t row = blockIdx.x; row < box_rows(call.shape); row += gridDim.x) {
    for (uint32_t first = threadIdx.x; first < items; first += kBlocksThreads * kBlocksAhead<N>) {
      Pack<Low, N> values[kBlocksAhead<N>];
#pragma unroll
      for (int ahead = 0; ahead < kBlocksAhead<N>; ++ahead) {
        const uint32_t item = first + ahead * kBlocksThreads;
        if (item < items) values[ahead] = load_pack<N>(call.blocks + place_in_blocks(call.shape, row, item, N));
      }
#pragma unroll
      for (int ahead = 0; ahead < kBlocksAhead<N>; ++ahead) {
        const uint32_t item = first + ahead * kBlocksThreads;
        if (item >= items) continue;
        if (call.bias != nullptr) add_bias(values[ahead], call.bias + item % packs * N, call.slope);
        store_pack(values[ahead], call.box + (row * items + item) * N);
      }
    }
  }
}

unsigned rows_of_grid(int64_t rows) { return static_cast<unsigned>(rows < kMostBlocksRows ? rows : kMostBlocksRows); }

template <int N, typename Low>
cudaError_t launch_to(const ToBlocks<Low>& call, cudaStream_t stream) {
  to_blocks_kernel<N><<<rows_of_grid(block_rows(call.shape)), kBlocksThreads, 0, stream>>>(call);
  return cudaGetLastError();
}

template <int N, typename Low>
cudaError_t launch_from(const FromBlocks<Low>& call, cudaStream_t stream) {
  from_blocks_kernel<N><<<rows_of_grid(box_rows(call.shape)), kBlocksThreads, 0, stream>>>(call);
  return cudaGetLastError();
}

}  // namespace

template <typename Low>
cudaError_t launch_to_blocks(const ToBlocks<Low>& call, cudaStream_t stream) {
  constexpr int kPack = 16 / sizeof(Low), kHalf = kPack / 2;
  if (are_of_packs<kPack>(call.shape.channels, call.box, call.blocks)) return launch_to<kPack>(call, stream);
  if (are_of_packs<kHalf>(call.shape.channels, call.box, call.blocks)) return launch_to<kHalf>(call, stream);
  return launch_to<1>(call, stream);
}

template <typename Low>
cudaError_t launch_from_blocks(const FromBlocks<Low>& call, cudaStream_t stream) {
  constexpr int kPack = 16 / sizeof(Low);
  if (are_of_packs<kPack>(call.shape.channels, call.box, call.blocks)) return launch_from<kPack>(call, stream);
  return launch_from<1>(call, stream);
}

template cudaError_t launch_to_blocks(const ToBlocks<float>&, cudaStream_t);
template cudaError_t launch_to_blocks(const ToBlocks<__half>&, cudaStream_t);
template cudaError_t launch_to_blocks(const ToBlocks<__nv_bfloat16>&, cudaStream_t);
template cudaError_t launch_from_blocks(const FromBlocks<float>&, cudaStream_t);
template cudaError_t launch_from_blocks(const FromBlocks<__half>&, cudaStream_t);
template cudaError_t launch_from_blocks(const FromBlocks<__nv_bfloat16>&, cudaStream_t);

}  // namespace welkin::ops
