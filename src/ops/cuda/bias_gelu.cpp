// SPDX-License-Identifier: Apache-2.0
// The functions of ops/gemm/gelu_linear.h on CUDA tensors.
#include "ops/cuda/bias_gelu.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "ops/cuda/low_types.h"
#include "ops/device/device_ops.h"
#include "ops/gemm/gelu_linear.h"

namespace welkin::ops {
namespace {

constexpr const char* kBiasGelu = "bias_gelu";

at::Tensor forward_on_cuda(const at::Tensor& x, const at::Tensor& bias) {
  check_places(kBiasGelu, x, {x, bias});
  const c10::cuda::CUDAGuard guard(x.device());
  const at::Tensor out = at::empty_like(x);
  for_low_type(kBiasGelu, x.scalar_type(), [&](auto low) {
    using Low = decltype(low);
    GeluForward<Low> call;
    call.width = x.size(-1);
    call.rows = x.numel() / call.width;
    call.x = static_cast<const Low*>(x.const_data_ptr());
    call.bias = bias.const_data_ptr<float>();
    call.out = static_cast<Low*>(out.mutable_data_ptr());
    C10_CUDA_CHECK(launch_gelu_forward(call, c10::cuda::getCurrentCUDAStream()));
  });
  return out;
}

GeluGradients backward_on_cuda(const at::Tensor& grad_out, const at::Tensor& x, const at::Tensor& bias) {
  check_places(kBiasGelu, x, {grad_out, x, bias});
  TORCH_CHECK(grad_out.scalar_type() == x.scalar_type() && grad_out.numel() == x.numel(), "bias_gelu: a gradient of its result");
  const c10::cuda::CUDAGuard guard(x.device());
  const int64_t width = x.size(-1), rows = x.numel() / width;
  const at::Tensor partials = at::empty({gelu_chunks(rows), width}, bias.options());
  GeluGradients gradients{.out = at::empty_like(x), .grad_x = at::empty_like(x), .grad_bias = at::empty({width}, bias.options())};
  for_low_type(kBiasGelu, x.scalar_type(), [&](auto low) {
    using Low = decltype(low);
    GeluBackward<Low> call;
    call.rows = rows;
    call.width = width;
    call.grad_out = static_cast<const Low*>(grad_out.const_data_ptr());
    call.x = static_cast<const Low*>(x.const_data_ptr());
    call.bias = bias.const_data_ptr<float>();
    call.out = static_cast<Low*>(gradients.out.mutable_data_ptr());
    call.grad_x = static_cast<Low*>(gradients.grad_x.mutable_data_ptr());
    C10_CUDA_CHECK(launch_gelu_backward(call, partials.mutable_data_ptr<float>(), gradients.grad_bias.mutable_data_ptr<float>(),
                                        c10::cuda::getCurrentCUDAStream()));
  });
  return gradients;
}

const bool kGeluRegistered = [] {
  device_ops().gelu = {.device = c10::kCUDA, .forward = &forward_on_cuda, .backward = &backward_on_cuda};
  return true;
}();

}  // namespace
}  // namespace welkin::ops
