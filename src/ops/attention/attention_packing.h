// SPDX-License-Identifier: Apache-2.0
// Packs heads for the tiles of attention (ops/cpu/attention/attention_kernel.h), and unpacks results: rows and panels of
// float32 from any type that attention takes, of bfloat16 from bfloat16.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/cpu/lanes/bf16.h"

namespace welkin::ops::attention_detail {

inline int64_t padded_to(int64_t length, int64_t multiple) { return (length + multiple - 1) / multiple * multiple; }

// A head of (B, H, rows, head_dim) with any strides but a dense last dim. The tensor stays the caller's.
struct HeadView {
  const at::Tensor& tensor;
  int64_t offset;  // elements
  int64_t row_stride;

  HeadView(const at::Tensor& x, int64_t head)
      : tensor(x), offset(head / x.size(1) * x.stride(0) + head % x.size(1) * x.stride(1)), row_stride(x.stride(2)) {}
};

// Packs rows [begin, begin + count) of a head, times `factor` (none for bfloat16); zero behind the last row.
void pack_rows(const HeadView& head, int64_t begin, int64_t count, int64_t padded_dim, float factor, float* to);
void pack_rows(const HeadView& head, int64_t begin, int64_t count, int64_t padded_dim, float factor, Bf16* to);

// Interleaves pairs of rows: in every 2 * distance rows those at this distance.
void pack_steps(const HeadView& head, int64_t padded_rows, int64_t padded_dim, int64_t distance, Bf16* to);

// Packs all rows as panels (row / panel, panel_dim, row % panel), bfloat16 as (row / panel, panel_dim / 2, row % panel, 2).
void pack_panels(const HeadView& head, int64_t padded_rows, int64_t panel_dim, int64_t panel, float* to);
void pack_panels(const HeadView& head, int64_t padded_rows, int64_t panel_dim, int64_t panel, Bf16* to);

// Unpacks rows times `factor` into rows [begin, begin + count) of a head of a (B, rows, H, head_dim) tensor.
void unpack_rows(const float* from, int64_t padded_dim, float factor, int64_t begin, int64_t count, at::Tensor& to_BNHD,
                 int64_t head);

// Splits float32 in two parts of bfloat16, the second being the rounding error of the first, as (B, H, rows, 3 head_dim):
// large, large, small on the left side of a matmul, large, small, large on the right (ops/cpu/attention/attention_kernel.h).
// Rows of a head keep the memory order of x.
at::Tensor joined_parts(const at::Tensor& x_BHND, bool left);

// to[row] = the sum over the head dim of a times b, both of one type.
void dot_rows(const HeadView& a, const HeadView& b, float* to);

}  // namespace welkin::ops::attention_detail
