// SPDX-License-Identifier: Apache-2.0
// Words of a stream from aten's integer operators, on any device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace welkin::ops {

// (n) int64 with 32 bits each: for element e word e mod 4 of philox(stream, counter, e / 4). `counter`: () int64 on the
// device that computes. `element`: (n) int64 on it.
at::Tensor philox_words(uint64_t stream, const at::Tensor& counter, const at::Tensor& element);
// For `count` consecutive elements, at a quarter of the work.
at::Tensor philox_words(uint64_t stream, const at::Tensor& counter, int64_t first, int64_t count);

}  // namespace welkin::ops
