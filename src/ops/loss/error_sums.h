// SPDX-License-Identifier: Apache-2.0
// Error sums per sample, from which losses are made, in one pass over prediction and target, and their gradient in
// another: on a GPU, by kernels in libwelkin_cuda.so. Elsewhere losses use aten's operators, one pass each.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>

#include "ops/arithmetic/error_sums_kernel.h"

namespace welkin::ops {

// prediction (B, C, spatial...) -> (B, 2) float32, see ErrorKind. `rate`: of ErrorKind::Absolute. Differentiable once,
// by the prediction; its gradient has the prediction's type and strides. Call it only if fuses_error_sums() is true.
at::Tensor error_sums(const at::Tensor& prediction, const at::Tensor& target, ErrorKind kind, double rate = 0);

// True if there is a kernel: for fields and boxes on a GPU, with a prediction in float32, float16 or bfloat16 and a target in
// float32 that needs no gradient.
bool fuses_error_sums(const at::Tensor& prediction, const at::Tensor& target);

// Helpers for code that calls the kernels. A field has one plane.
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
