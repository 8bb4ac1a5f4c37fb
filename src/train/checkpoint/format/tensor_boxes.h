// SPDX-License-Identifier: Apache-2.0
// Pieces of a tensor as boxes of it, so that what two pieces have in common is copied alone, however each lies in memory and
// whichever layout it comes from.
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

// Of `count` elements from the place on: each is in one box. For a tensor of d dims there are at most 2 d - 1 boxes in each
// block.
std::vector<PieceBox> boxes_of_piece(const PiecePlace& place, int64_t count);

bool have_common(const PieceBox& a, const PieceBox& b);

// What both boxes hold, from the memory of one piece into that of the other, which are of one type: how many elements. They have
// some in common.
int64_t copy_common(const PieceBox& from, const at::Tensor& source, const PieceBox& to, const at::Tensor& target);

// (count) elements from the place on of a whole tensor that is row-major and of the place's shape.
at::Tensor piece_of_row_major(const at::Tensor& whole, const PiecePlace& place, int64_t count);

}  // namespace welkin::train
