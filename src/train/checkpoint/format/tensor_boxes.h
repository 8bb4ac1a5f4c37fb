// SPDX-License-Identifier: Apache-2.0
// Pieces of a tensor as boxes of it. Only the elements that two pieces have in common are copied, however each lies in memory
// and whichever layout it comes from.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "train/checkpoint/format/checkpoint_index.h"

namespace welkin::train {

// A box of a tensor, whose elements a piece holds at `strides` from `offset` on.
struct PieceBox {
  std::vector<int64_t> begin, extent;  // in the whole tensor
  int64_t offset = 0;
  std::vector<int64_t> strides;
};

// The boxes of `count` elements from the place on; each element is in one box. For a tensor of d dims there are at most 2 d - 1
// boxes in each block.
std::vector<PieceBox> boxes_of_piece(const PiecePlace& place, int64_t count);

bool have_common(const PieceBox& a, const PieceBox& b);

// Copies the elements of both boxes from the memory of one piece into that of the other; returns their number. The pieces have
// one type. The boxes have some elements in common.
int64_t copy_common(const PieceBox& from, const at::Tensor& source, const PieceBox& to, const at::Tensor& target);

// (count) elements from the place on, of a whole row-major tensor of the place's shape.
at::Tensor piece_of_row_major(const at::Tensor& whole, const PiecePlace& place, int64_t count);

}  // namespace welkin::train
