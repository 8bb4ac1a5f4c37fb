// SPDX-License-Identifier: Apache-2.0
// welkin::philox_dropout on CUDA tensors.
#include "ops/cuda/philox_dropout.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "ops/arithmetic/philox_dropout_kernel.h"

namespace welkin::ops {
namespace {

MaskType mask_type(const at::Tensor& values) {
  switch (values.scalar_type()) {
    case at::kDouble:
      return MaskType::Float64;
    case at::kFloat:
      return MaskType::Float32;
    case at::kHalf:
      return MaskType::Float16;
    case at::kBFloat16:
      return MaskType::Bfloat16;
    default:
      TORCH_CHECK(false, "philox_dropout: float64, float32, float16 or bfloat16, not ", values.scalar_type());
  }
}

at::Tensor philox_dropout_cuda(const at::Tensor& x, const at::Tensor& step, const at::Tensor& sample, int64_t stream, double rate,
                               at::IntArrayRef global_shape, at::IntArrayRef offset) {
  TORCH_CHECK(step.device() == x.device() && sample.device() == x.device(),
              "philox_dropout: step and sample must stand on the device of x");
  const c10::cuda::CUDAGuard guard(x.device());
  const at::Tensor in = x.contiguous();
  const at::Tensor numbers = sample.contiguous();
  at::Tensor out = at::empty_like(in);
  if (in.numel() == 0) return out;
  MaskLaunch launch;
  launch.layout = mask_layout(in, global_shape, offset);
  launch.rule = mask_rule(static_cast<uint64_t>(stream), rate);
  launch.step = step.const_data_ptr<int64_t>();
  launch.sample = numbers.const_data_ptr<int64_t>();
  launch.in = in.const_data_ptr();
  launch.out = out.mutable_data_ptr();
  launch.type = mask_type(in);
  C10_CUDA_CHECK(launch_mask(launch, c10::cuda::getCurrentCUDAStream()));
  return out;
}

}  // namespace
}  // namespace welkin::ops

TORCH_LIBRARY_IMPL(welkin, CUDA, library) { library.impl("philox_dropout", welkin::ops::philox_dropout_cuda); }
