// SPDX-License-Identifier: Apache-2.0
// Samples of a batch in one pass over memory: cropped from data on the device, turned by one of the symmetries of the cube,
// clipped, scaled, cast and laid out. Kernels: CPU here, CUDA in libwelkin_cuda.so; operator welkin::crop_samples of torch's
// dispatcher. It knows elements and strides, but no data set.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/arithmetic/sample_crop_kernel.h"

namespace welkin::ops {

struct CropTables {
  at::Tensor place;    // (B, kCropPlaceWords) int64: a CropPlace per sample
  at::Tensor channel;  // (B, C) int64: crop_channel() per sample and output channel
  at::Tensor op;       // (C, kCropOpWords) float64: a CropOp per output channel
};

// Writes out (B, C, D, H, W), of any strides, float32, float16 or bfloat16, from the one-dimensional contiguous `source` of one
// of these types. All on one device. `layout` and the tables give the position of each element; on a GPU they are not checked
// against the source's size.
void crop_samples(const at::Tensor& out, const at::Tensor& source, const CropSource& layout, const CropTables& tables);

// The same from aten's operators, for devices without a kernel of ours: slower, and with more memory.
void crop_samples_reference(const at::Tensor& out, const at::Tensor& source, const CropSource& layout, const CropTables& tables);

// For code that calls the kernels: sizes and strides of `out`.
CropTarget crop_target(const at::Tensor& out);

}  // namespace welkin::ops
