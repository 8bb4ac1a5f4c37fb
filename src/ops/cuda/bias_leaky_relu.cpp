// SPDX-License-Identifier: Apache-2.0
// The functions of ops/convolution/bias_leaky_relu.h on CUDA tensors.
#include "ops/cuda/bias_leaky_relu.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "ops/convolution/bias_leaky_relu.h"
#include "ops/cuda/low_types.h"
#include "ops/device/device_ops.h"

namespace welkin::ops {
namespace {

constexpr const char* kBiasLeakyRelu = "bias_leaky_relu";

void check_boxes(const at::Tensor& first, at::TensorList others) {
  for (const at::Tensor& box : others) {
    TORCH_CHECK(box.device() == first.device() && box.scalar_type() == first.scalar_type() && box.sizes() == first.sizes() &&
                    box.is_contiguous(at::MemoryFormat::ChannelsLast3d),
                kBiasLeakyRelu, ": boxes alike, channels-last without gaps, on one device");
  }
}

void forward_on_cuda(const at::Tensor& x, const at::Tensor& bias, double slope) {
  check_boxes(x, {x});
  check_places(kBiasLeakyRelu, x, {bias});
  TORCH_CHECK(bias.numel() == x.size(1), kBiasLeakyRelu, ": a bias per channel");
  const c10::cuda::CUDAGuard guard(x.device());
  for_low_type(kBiasLeakyRelu, x.scalar_type(), [&](auto low) {
    using Low = decltype(low);
    LeakyReluForward<Low> call;
    call.width = x.size(1);
    call.rows = x.numel() / call.width;
    call.bias = bias.const_data_ptr<float>();
    call.slope = static_cast<float>(slope);
    call.x = static_cast<Low*>(x.mutable_data_ptr());
    C10_CUDA_CHECK(launch_leaky_relu_forward(call, c10::cuda::getCurrentCUDAStream()));
  });
}

LeakyReluGradients backward_on_cuda(const at::Tensor& grad_out, const at::Tensor& out, double slope) {
  check_boxes(out, {grad_out, out});
  const c10::cuda::CUDAGuard guard(out.device());
  const int64_t width = out.size(1), rows = out.numel() / width;
  const auto sums = out.options().dtype(at::kFloat);
  const at::Tensor partials = at::empty({leaky_relu_chunks(rows), width}, sums);
  LeakyReluGradients gradients{.grad_x = at::empty_like(out), .grad_bias = at::empty({width}, sums)};
  for_low_type(kBiasLeakyRelu, out.scalar_type(), [&](auto low) {
    using Low = decltype(low);
    LeakyReluBackward<Low> call;
    call.rows = rows;
    call.width = width;
    call.grad_out = static_cast<const Low*>(grad_out.const_data_ptr());
    call.out = static_cast<const Low*>(out.const_data_ptr());
    call.slope = static_cast<float>(slope);
    call.grad_x = static_cast<Low*>(gradients.grad_x.mutable_data_ptr());
    C10_CUDA_CHECK(launch_leaky_relu_backward(call, partials.mutable_data_ptr<float>(),
                                              gradients.grad_bias.mutable_data_ptr<float>(), c10::cuda::getCurrentCUDAStream()));
  });
  return gradients;
}

at::Tensor column_sums_on_cuda(const at::Tensor& values) {
  const bool is_box = values.dim() == 5 && values.is_contiguous(at::MemoryFormat::ChannelsLast3d);
  TORCH_CHECK(values.dim() > 0 && (is_box || values.is_contiguous()), kBiasLeakyRelu,
              ": rows without gaps, or a channels-last box");
  const c10::cuda::CUDAGuard guard(values.device());
  const int64_t width = values.size(is_box ? 1 : -1), rows = width == 0 ? 0 : values.numel() / width;
  const auto sums = values.options().dtype(at::kFloat);
  const at::Tensor out = at::zeros({width}, sums);
  if (rows == 0) return out;
  const at::Tensor partials = at::empty({leaky_relu_chunks(rows), width}, sums);
  for_low_type(kBiasLeakyRelu, values.scalar_type(), [&](auto low) {
    using Low = decltype(low);
    LeakyReluBackward<Low> call;
    call.rows = rows;
    call.width = width;
    call.grad_out = static_cast<const Low*>(values.const_data_ptr());
    C10_CUDA_CHECK(launch_leaky_relu_backward(call, partials.mutable_data_ptr<float>(), out.mutable_data_ptr<float>(),
                                              c10::cuda::getCurrentCUDAStream()));
  });
  return out;
}

const bool kLeakyReluRegistered = [] {
  device_ops().leaky_relu = {
      .device = c10::kCUDA, .forward = &forward_on_cuda, .backward = &backward_on_cuda, .column_sums = &column_sums_on_cuda};
  return true;
}();

}  // namespace
}  // namespace welkin::ops
