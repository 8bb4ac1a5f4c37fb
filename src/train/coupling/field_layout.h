// SPDX-License-Identifier: Apache-2.0
// How one field lies in the memory of another program.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace welkin::train {

// Values of one channel in the caller's memory: (H, W) or (D, H, W) elements. `strides` are the distances of neighbours along
// each dim. A Fortran array a(W, H) has the strides (W, 1), and a(H, W) has (1, H): the caller rearranges neither.
struct FieldLayout {
  bool is_double = false;             // else float32
  std::vector<int64_t> strides = {};  // in elements; empty: the last dim runs fastest, without gaps
};

// The caller's memory as a tensor of this shape, which owns nothing. ConfigError if the strides do not fit.
at::Tensor view_of(void* values, const std::vector<int64_t>& shape, const FieldLayout& layout);

}  // namespace welkin::train
