// SPDX-License-Identifier: Apache-2.0
// Dropout and drop-path whose masks are pure functions of (stream, step, sample, global element): the same for every batch
// split, layout, thread count and device. The backward pass recomputes them instead of storing them, and graphs replay them,
// since the step is read from a device tensor. Kernels: CPU here, CUDA in libwelkin_cuda.so; other devices run the reference
// form. Torch's dispatcher holds the table (operator welkin::philox_dropout), filled when a library is loaded.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace welkin::ops {

struct MaskKey {
  uint64_t stream = 0;  // core/philox.h: stream_key(seed, name of the layer)
  at::Tensor step;      // () int64
  at::Tensor sample;    // (B) int64, one per element of dim 0
};

// The place of a local tensor in the global one: extents and offsets of dims 1, 2, ... Empty if it is the whole.
struct MaskWindow {
  std::vector<int64_t> global_shape;
  std::vector<int64_t> offset;
  // philox_dropout() alone: dims 1, 2, ... as which those of the local tensor are seen; empty: as they are.
  std::vector<int64_t> local_shape = {};
};

// x (B, ...) of any floating type, at most 7 dims -> the same shape: x / (1 - rate) where the mask keeps it, else 0.
// Differentiable in x. `rate` in [0, 1); at 0 it returns x. The caller decides about training mode.
at::Tensor philox_dropout(const at::Tensor& x, double rate, const MaskKey& key, const MaskWindow& window = {});

// The same with one decision per sample (stochastic depth): whole samples of a residual branch are dropped.
at::Tensor philox_drop_path(const at::Tensor& x, double rate, const MaskKey& key);

// Only the mask, from aten's integer operators: slow, but runs wherever aten does; the reference for the kernels.
// shape: of x. Returns bool, true where kept, on the key's device.
at::Tensor philox_keep_reference(at::IntArrayRef shape, double rate, const MaskKey& key, const MaskWindow& window = {});

}  // namespace welkin::ops
