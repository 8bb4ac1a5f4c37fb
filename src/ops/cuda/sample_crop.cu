// SPDX-License-Identifier: Apache-2.0
// The CUDA kernel of welkin::crop_samples: a block per slab of rows of a plane of the output, eight at a time, a warp per row.
// What they share is worked out once per slab: a cell is one multiplication then. Where a turn makes the source's last axis run
// along the output's rows, the eight rows use the whole of every 32-byte sector that is read.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "ops/cuda/sample_crop.h"

namespace welkin::ops {
namespace {

constexpr int kWarp = 32, kRows = 8, kSlab = 32;
// Reads are waited for: of many warps with two each in flight, whose registers are just enough (nvcc 13.0, sm_90: 80, none
// spilt).
constexpr int kBlocksAtOnce = 3;
constexpr int64_t kMostBlocks = 65536;

int64_t cut_slabs(const CropTarget& target) {
  return target.size[0] * target.size[1] * target.size[2] * ((target.size[3] + kSlab - 1) / kSlab);
}

__device__ float as_float(float value) { return value; }
__device__ float as_float(__half value) { return __half2float(value); }
__device__ float as_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ void store(float value, float* to) { *to = value; }
__device__ void store(float value, __half* to) { *to = __float2half_rn(value); }
__device__ void store(float value, __nv_bfloat16* to) { *to = __float2bfloat16_rn(value); }

template <typename From, typename To>
__global__ void __launch_bounds__(kWarp* kRows, kBlocksAtOnce)
    cut_kernel(const __grid_constant__ CropSource source, const __grid_constant__ CropTarget target, const CropPlace* place,
               const int64_t* channels, const CropOp* ops, const From* from, To* to) {
  const auto num_channels = static_cast<uint32_t>(target.size[1]), planes = static_cast<uint32_t>(target.size[2]);
  const int64_t rows = target.size[3], columns = target.size[4];
  const auto slabs = static_cast<uint32_t>((rows + kSlab - 1) / kSlab);
  const uint32_t num_slabs = static_cast<uint32_t>(target.size[0]) * num_channels * planes * slabs;
  for (uint32_t slab = blockIdx.x; slab < num_slabs; slab += gridDim.x) {
    const int64_t first = slab % slabs * kSlab, last = first + kSlab < rows ? first + kSlab : rows;
    const uint32_t i = slab / slabs % planes, box = slab / slabs / planes, b = box / num_channels, c = box % num_channels;
    const int64_t channel = channels[box];
    const CropAxis along_planes = crop_axis(source, place[b], 0), along_rows = crop_axis(source, place[b], 1);
    const CropAxis along_columns = crop_axis(source, place[b], 2);
    const CropOp op = ops[c];
    const From* const begin = from + crop_begin(source, place[b], channel) + along_planes.element(i);
    To* const out = to + b * target.stride[0] + c * target.stride[1] + i * target.stride[2];
    for (int64_t j = first + threadIdx.y; j < last; j += kRows) {
      const From* const row = begin + along_rows.element(j);
#pragma unroll 2
      for (int64_t k = threadIdx.x; k < columns; k += kWarp) {
        const float value = as_float(row[along_columns.element(k)]);
        store(crop_value(value, (channel & 1) != 0, op), out + j * target.stride[3] + k * target.stride[4]);
      }
    }
  }
}

template <typename From, typename To>
void launch_typed(const CropLaunch& l, cudaStream_t stream) {
  const int64_t wanted = cut_slabs(l.target);
  if (wanted == 0) return;
  const auto blocks = static_cast<unsigned>(wanted < kMostBlocks ? wanted : kMostBlocks);
  cut_kernel<<<blocks, dim3(kWarp, kRows), 0, stream>>>(l.source, l.target, l.place, l.channel, l.op,
                                                        static_cast<const From*>(l.from), static_cast<To*>(l.to));
}

template <typename From>
void launch_from(const CropLaunch& launch, cudaStream_t stream) {
  switch (launch.to_type) {
    case CropType::Float32:
      return launch_typed<From, float>(launch, stream);
    case CropType::Float16:
      return launch_typed<From, __half>(launch, stream);
    case CropType::Bfloat16:
      return launch_typed<From, __nv_bfloat16>(launch, stream);
  }
}

}  // namespace

cudaError_t launch_crop(const CropLaunch& launch, cudaStream_t stream) {
  switch (launch.from_type) {
    case CropType::Float32:
      launch_from<float>(launch, stream);
      break;
    case CropType::Float16:
      launch_from<__half>(launch, stream);
      break;
    case CropType::Bfloat16:
      launch_from<__nv_bfloat16>(launch, stream);
      break;
  }
  return cudaGetLastError();
}

}  // namespace welkin::ops
