// SPDX-License-Identifier: Apache-2.0
// The CUDA kernel of welkin::philox_dropout. One thread per Philox block of a row; the step is read on the device, so that a
// captured graph draws new masks at every replay.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "core/philox.h"
#include "ops/cuda/philox_dropout.h"

namespace welkin::ops {
namespace {

constexpr int kMaskThreads = 256;
constexpr int64_t kMostMaskBlocks = 65536;

template <typename T>
__device__ T kept(T value, const MaskRule& rule) {
  return static_cast<T>(static_cast<float>(value) * rule.scale);
}
template <>
__device__ double kept(double value, const MaskRule& rule) {
  return value * (1.0 / (1.0 - rule.threshold * 0x1.0p-32));
}

// blocks_per_row covers a row that begins inside a Philox block.
template <typename T>
__global__ void dropout_kernel(MaskLayout layout, MaskRule rule, int64_t blocks_per_row, const int64_t* step,
                               const int64_t* sample, const T* in, T* out) {
  const int64_t num_rows = layout.num_samples * layout.rows_per_sample;
  const int64_t now = *step;
  for (int64_t item = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; item < num_rows * blocks_per_row;
       item += int64_t{gridDim.x} * blockDim.x) {
    const int64_t row = item / blocks_per_row;
    const int64_t start = row_start(layout, row % layout.rows_per_sample);
    const int64_t block = start / 4 + item % blocks_per_row;
    const uint64_t counter = mask_counter(now, sample[row / layout.rows_per_sample]);
    const PhiloxBlock words = philox(rule.stream, counter, static_cast<uint64_t>(block));
#pragma unroll
    for (int lane = 0; lane < 4; ++lane) {
      const int64_t column = block * 4 + lane - start;
      if (column < 0 || column >= layout.row_length) continue;
      const int64_t place = row * layout.row_length + column;
      out[place] = words[lane] >= rule.threshold ? kept(in[place], rule) : static_cast<T>(0.0F);
    }
  }
}

template <typename T>
void launch_typed_mask(const MaskLaunch& l, cudaStream_t stream) {
  const int64_t blocks_per_row = (l.layout.row_length + 3) / 4 + 1;
  const int64_t items = l.layout.num_samples * l.layout.rows_per_sample * blocks_per_row;
  const int64_t wanted = (items + kMaskThreads - 1) / kMaskThreads;
  const auto blocks = static_cast<unsigned>(wanted < kMostMaskBlocks ? wanted : kMostMaskBlocks);
  dropout_kernel<<<blocks, kMaskThreads, 0, stream>>>(l.layout, l.rule, blocks_per_row, l.step, l.sample,
                                                      static_cast<const T*>(l.in), static_cast<T*>(l.out));
}

}  // namespace

cudaError_t launch_mask(const MaskLaunch& launch, cudaStream_t stream) {
  switch (launch.type) {
    case MaskType::Float64:
      launch_typed_mask<double>(launch, stream);
      break;
    case MaskType::Float32:
      launch_typed_mask<float>(launch, stream);
      break;
    case MaskType::Float16:
      launch_typed_mask<__half>(launch, stream);
      break;
    case MaskType::Bfloat16:
      launch_typed_mask<__nv_bfloat16>(launch, stream);
      break;
  }
  return cudaGetLastError();
}

}  // namespace welkin::ops
