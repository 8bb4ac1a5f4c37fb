// SPDX-License-Identifier: Apache-2.0
// Cuts the memory of a tensor into one contiguous piece per member of a group, for any memory order of its dims. It cuts
// between rows (the outermost dims in memory, enough of them for pieces of nearly equal size). Pieces may be empty.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace welkin::parallel {

class MemorySplit {
 public:
  MemorySplit() = default;
  // For a dense tensor of any strides. With a `block` of more than one element pieces are flat, and begin at multiples of it.
  MemorySplit(const at::Tensor& tensor, int64_t members, int64_t block = 1);

  int64_t members() const { return members_; }
  int64_t numel(int64_t member) const {
    return std::min(elements_, offset(member) + row_size_ * rows_of(member)) - offset(member);
  }
  int64_t offset(int64_t member) const;  // of the piece's first element in memory
  int64_t longest() const { return numel(0); }
  bool is_even() const { return rows_ % members_ == 0 && rows_ * row_size_ == elements_; }
  // Shape of the piece: its rows, then the other dims in memory order.
  std::vector<int64_t> shape(int64_t member) const;

  // A view of `memory`, (elements).
  at::Tensor piece_of(const at::Tensor& memory, int64_t member) const;

 private:
  int64_t rows_of(int64_t member) const { return rows_ / members_ + (member < rows_ % members_ ? 1 : 0); }

  int64_t members_ = 1;
  int64_t elements_ = 0, rows_ = 0, row_size_ = 1;
  bool is_flat_ = false;
  std::vector<int64_t> row_shape_;
};

// The memory of a dense tensor as one dim: a view without a graph.
at::Tensor memory_of(const at::Tensor& dense);

}  // namespace welkin::parallel
