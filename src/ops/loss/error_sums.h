// SPDX-License-Identifier: Apache-2.0
// Sums of errors over each sample, of which losses are made, in one pass over prediction and target, and their gradient in
// another: on a GPU, by kernels in libwelkin_cuda.so. Elsewhere losses are made of aten's operators, pass by pass.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>

#include "ops/arithmetic/error_sums_kernel.h"

namespace welkin::ops {

// prediction (B, C, spatial...) -> (B, 2) float32, see ErrorKind. `rate` is that of ErrorKind::Absolute. Differentiable once,
// by the prediction; its gradient comes in the prediction's type and strides. Only where fuses_error_sums() says so.
at::Tensor error_sums(const at::Tensor& prediction, const at::Tensor& target, ErrorKind kind, double rate = 0);

// Whether there is a kernel: fields and boxes on a GPU, a prediction in float32, float16 or bfloat16, a target in float32 of
// which nobody wants the gradient.
bool fuses_error_sums(const at::Tensor& prediction, const at::Tensor& target);

// For what calls the kernels. A field has one plane.
void fill_error_sizes(const at::Tensor& values, int64_t (&size)[kErrorDims]);
void fill_error_strides(const at::Tensor& values, int64_t (&stride)[kErrorDims]);

template <typename Low>
ErrorCall<Low> error_call(const at::Tensor& prediction, const at::Tensor& target, ErrorKind kind, double rate) {
  ErrorCall<Low> call;
  call.kind = kind;
  call.rate = static_cast<float>(rate);
  fill_error_sizes(prediction, call.size);
  fill_error_strides(prediction, call.prediction_stride);
  fill_error_strides(target, call.target_stride);
  call.prediction = static_cast<const Low*>(prediction.const_data_ptr());
  call.target = target.const_data_ptr<float>();
  return call;
}

}  // namespace welkin::ops
