// SPDX-License-Identifier: Apache-2.0
// The CUDA kernel of welkin::philox_dropout. One thread per Philox block of a row; the step is read on the device, so that a
// captured graph draws new masks at every replay.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <algorithm>

#include "core/philox.h"
#include "ops/philox_dropout_kernel.h"

namespace welkin::ops {
namespace {

template <typename T>
__device__ T kept(T value, const MaskRule& rule) {
  return static_cast<T>(static_cast<float>(value) * rule.scale);
}
template <>
__device__ double kept(double value, const MaskRule& rule) {
  return value / (1.0 - rule.threshold * 0x1.0p-32);
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
      out[place] = words[lane] >= rule.threshold ? kept(in[place], rule) : static_cast<T>(0);
    }
  }
}

at::Tensor philox_dropout_cuda(const at::Tensor& x, const at::Tensor& step, const at::Tensor& sample, int64_t stream, double rate,
                               at::IntArrayRef global_shape, at::IntArrayRef offset) {
  TORCH_CHECK(step.is_cuda() && sample.is_cuda(), "philox_dropout: step and sample must stand on the device of x");
  const c10::cuda::CUDAGuard guard(x.device());
  const at::Tensor in = x.contiguous();
  const at::Tensor numbers = sample.contiguous();
  at::Tensor out = at::empty_like(in);
  if (in.numel() == 0) return out;
  const MaskLayout layout = mask_layout(in, global_shape, offset);
  const MaskRule rule = mask_rule(static_cast<uint64_t>(stream), rate);
  const int64_t blocks_per_row = (layout.row_length + 3) / 4 + 1;
  const int64_t items = layout.num_samples * layout.rows_per_sample * blocks_per_row;
  constexpr int kThreads = 256;
  const int64_t grid = std::min<int64_t>((items + kThreads - 1) / kThreads, 65536);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, in.scalar_type(), "philox_dropout", [&] {
    dropout_kernel<<<static_cast<unsigned>(grid), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        layout, rule, blocks_per_row, step.const_data_ptr<int64_t>(), numbers.const_data_ptr<int64_t>(),
        in.const_data_ptr<scalar_t>(), out.mutable_data_ptr<scalar_t>());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return out;
}

}  // namespace
}  // namespace welkin::ops

TORCH_LIBRARY_IMPL(welkin, CUDA, library) { library.impl("philox_dropout", welkin::ops::philox_dropout_cuda); }
