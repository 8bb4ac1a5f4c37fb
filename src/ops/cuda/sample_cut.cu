// SPDX-License-Identifier: Apache-2.0
// The CUDA kernel of welkin::cut_samples: a warp per row of the output, eight rows per block. Where a turn makes the source's
// last axis run along the output's rows, the eight rows of a block use the whole of every 32-byte sector that is read.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "ops/cuda/sample_cut.h"

namespace welkin::ops {
namespace {

constexpr int kWarp = 32, kRows = 8;
constexpr int64_t kMostBlocks = 65536;

__device__ float as_float(float value) { return value; }
__device__ float as_float(__half value) { return __half2float(value); }
__device__ float as_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ void store(float value, float* to) { *to = value; }
__device__ void store(float value, __half* to) { *to = __float2half_rn(value); }
__device__ void store(float value, __nv_bfloat16* to) { *to = __float2bfloat16_rn(value); }

template <typename From, typename To>
__global__ void cut_kernel(CutSource source, CutTarget target, const CutPlace* place, const int64_t* channels, const CutOp* ops,
                           const From* from, To* to) {
  const int64_t num_channels = target.size[1], planes = target.size[2], rows = target.size[3], columns = target.size[4];
  const int64_t num_rows = target.size[0] * num_channels * planes * rows;
  for (int64_t row = blockIdx.x * int64_t{kRows} + threadIdx.y; row < num_rows; row += gridDim.x * int64_t{kRows}) {
    const int64_t j = row % rows, i = row / rows % planes, c = row / rows / planes % num_channels;
    const int64_t b = row / rows / planes / num_channels;
    const int64_t channel = channels[b * num_channels + c];
    const CutPlace at = place[b];
    const CutOp op = ops[c];
    To* out = to + b * target.stride[0] + c * target.stride[1] + i * target.stride[2] + j * target.stride[3];
    for (int64_t k = threadIdx.x; k < columns; k += kWarp) {
      const float value = as_float(from[cut_element(source, at, channel, i, j, k)]);
      store(cut_value(value, (channel & 1) != 0, op), out + k * target.stride[4]);
    }
  }
}

template <typename From, typename To>
void launch_typed(const CutLaunch& l, cudaStream_t stream) {
  const int64_t num_rows = l.target.size[0] * l.target.size[1] * l.target.size[2] * l.target.size[3];
  const int64_t wanted = (num_rows + kRows - 1) / kRows;
  const auto blocks = static_cast<unsigned>(wanted < kMostBlocks ? wanted : kMostBlocks);
  cut_kernel<<<blocks, dim3(kWarp, kRows), 0, stream>>>(l.source, l.target, l.place, l.channel, l.op,
                                                        static_cast<const From*>(l.from), static_cast<To*>(l.to));
}

template <typename From>
void launch_from(const CutLaunch& launch, cudaStream_t stream) {
  switch (launch.to_type) {
    case CutType::Float32:
      return launch_typed<From, float>(launch, stream);
    case CutType::Float16:
      return launch_typed<From, __half>(launch, stream);
    case CutType::Bfloat16:
      return launch_typed<From, __nv_bfloat16>(launch, stream);
  }
}

}  // namespace

cudaError_t launch_cut(const CutLaunch& launch, cudaStream_t stream) {
  switch (launch.from_type) {
    case CutType::Float32:
      launch_from<float>(launch, stream);
      break;
    case CutType::Float16:
      launch_from<__half>(launch, stream);
      break;
    case CutType::Bfloat16:
      launch_from<__nv_bfloat16>(launch, stream);
      break;
  }
  return cudaGetLastError();
}

}  // namespace welkin::ops
