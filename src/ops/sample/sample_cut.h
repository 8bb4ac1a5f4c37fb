// SPDX-License-Identifier: Apache-2.0
// Samples of a batch in one pass over memory: cut from what lies on the device, turned by one of the symmetries of the cube,
// clipped, scaled, cast and laid out. Kernels: CPU here, CUDA in libwelkin_cuda.so; operator welkin::cut_samples of torch's
// dispatcher. Knows elements and strides, no data set.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/arithmetic/sample_cut_kernel.h"

namespace welkin::ops {

struct CutTables {
  at::Tensor place;    // (B, kCutPlaceWords) int64: a CutPlace per sample
  at::Tensor channel;  // (B, C) int64: cut_channel() per sample and output channel
  at::Tensor op;       // (C, kCutOpWords) float64: a CutOp per output channel
};

// Writes out (B, C, D, H, W), of any strides, float32, float16 or bfloat16, from the one-dimensional contiguous `source` of one
// of these types. All on one device. Element e of a channel lies where `layout` and the tables say; they are not checked against
// the source's size on a GPU.
void cut_samples(const at::Tensor& out, const at::Tensor& source, const CutSource& layout, const CutTables& tables);

// The same from aten's operators, for devices without a kernel of ours: slower, in more memory.
void cut_samples_reference(const at::Tensor& out, const at::Tensor& source, const CutSource& layout, const CutTables& tables);

// For what calls the kernels: sizes and strides of `out`.
CutTarget cut_target(const at::Tensor& out);

}  // namespace welkin::ops
