// SPDX-License-Identifier: Apache-2.0
// Shared by the kernels of welkin::philox_dropout: the layout of a mask from a tensor and its window, and the CPU kernel.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/arithmetic/philox_mask.h"

namespace welkin::ops {

// x (B, ...); global_shape and offset describe dims 1, 2, ... or are empty.
MaskLayout mask_layout(const at::Tensor& x, at::IntArrayRef global_shape, at::IntArrayRef offset);

at::Tensor philox_dropout_cpu(const at::Tensor& x, const at::Tensor& step, const at::Tensor& sample, int64_t stream, double rate,
                              at::IntArrayRef global_shape, at::IntArrayRef offset);

}  // namespace welkin::ops
