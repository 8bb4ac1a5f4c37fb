// SPDX-License-Identifier: Apache-2.0
// welkin::crop_samples on CUDA tensors.
#include "ops/cuda/sample_crop.h"

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <algorithm>

namespace welkin::ops {
namespace {

CropType cut_type(const at::Tensor& values) {
  switch (values.scalar_type()) {
    case at::kFloat:
      return CropType::Float32;
    case at::kHalf:
      return CropType::Float16;
    case at::kBFloat16:
      return CropType::Bfloat16;
    default:
      TORCH_CHECK(false, "crop_samples: float32, float16 or bfloat16, not ", values.scalar_type());
  }
}

void crop_samples_cuda(const at::Tensor& out, const at::Tensor& source, const at::Tensor& place, const at::Tensor& channel,
                       const at::Tensor& op, at::IntArrayRef stride, at::IntArrayRef edge) {
  TORCH_CHECK(source.device() == out.device() && place.device() == out.device() && channel.device() == out.device() &&
                  op.device() == out.device(),
              "crop_samples: all on one device");
  TORCH_CHECK(out.numel() <= kMaxCropRows * out.size(4), "crop_samples: at most 2^31 rows at once");
  const c10::cuda::CUDAGuard guard(out.device());
  CropLaunch launch;
  std::copy(stride.begin(), stride.end(), launch.source.stride);
  std::copy(edge.begin(), edge.end(), launch.source.edge);
  std::copy(out.sizes().begin(), out.sizes().end(), launch.target.size);
  std::copy(out.strides().begin(), out.strides().end(), launch.target.stride);
  launch.place = reinterpret_cast<const CropPlace*>(place.const_data_ptr<int64_t>());
  launch.channel = channel.const_data_ptr<int64_t>();
  launch.op = reinterpret_cast<const CropOp*>(op.const_data_ptr<double>());
  launch.from = source.const_data_ptr();
  launch.to = out.mutable_data_ptr();
  launch.from_type = cut_type(source);
  launch.to_type = cut_type(out);
  C10_CUDA_CHECK(launch_crop(launch, c10::cuda::getCurrentCUDAStream()));
}

}  // namespace
}  // namespace welkin::ops

TORCH_LIBRARY_IMPL(welkin, CUDA, library) { library.impl("crop_samples", welkin::ops::crop_samples_cuda); }
