// SPDX-License-Identifier: Apache-2.0
// The functions of ops/loss/error_sums.h on CUDA tensors.
#include "ops/cuda/error_sums.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "ops/cuda/low_types.h"
#include "ops/device/device_ops.h"
#include "ops/loss/error_sums.h"

namespace welkin::ops {
namespace {

constexpr const char* kErrorSums = "error_sums";

at::Tensor forward_on_cuda(const at::Tensor& prediction, const at::Tensor& target, ErrorKind kind, double rate) {
  const c10::cuda::CUDAGuard guard(prediction.device());
  const at::Tensor sums = at::empty({prediction.size(0), 2}, target.options());
  for_low_type(kErrorSums, prediction.scalar_type(), [&](auto low) {
    const auto call = error_call<decltype(low)>(prediction, target, kind, rate);
    const at::Tensor partials = at::empty({prediction.size(0), error_chunks(error_rows(call)), 2}, sums.options());
    static_assert(sizeof(ErrorPair<float>) == 2 * sizeof(float));
    auto* pairs = static_cast<ErrorPair<float>*>(partials.mutable_data_ptr());
    C10_CUDA_CHECK(launch_error_sums(call, pairs, sums.mutable_data_ptr<float>(), c10::cuda::getCurrentCUDAStream()));
  });
  return sums;
}

at::Tensor backward_on_cuda(const at::Tensor& grad_sums, const at::Tensor& prediction, const at::Tensor& target, ErrorKind kind,
                            double rate) {
  const c10::cuda::CUDAGuard guard(prediction.device());
  const at::Tensor grad_prediction = at::empty_like(prediction);
  for_low_type(kErrorSums, prediction.scalar_type(), [&](auto low) {
    using Low = decltype(low);
    ErrorBackward<Low> backward;
    backward.call = error_call<Low>(prediction, target, kind, rate);
    backward.grad_sums = grad_sums.const_data_ptr<float>();
    fill_error_strides(grad_prediction, backward.stride);
    backward.grad_prediction = static_cast<Low*>(grad_prediction.mutable_data_ptr());
    C10_CUDA_CHECK(launch_error_backward(backward, c10::cuda::getCurrentCUDAStream()));
  });
  return grad_prediction;
}

const bool kErrorsRegistered = [] {
  device_ops().errors = {.device = c10::kCUDA, .forward = &forward_on_cuda, .backward = &backward_on_cuda};
  return true;
}();

}  // namespace
}  // namespace welkin::ops
