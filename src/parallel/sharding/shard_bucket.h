// SPDX-License-Identifier: Apache-2.0
// Parameters whose pieces travel in one message: of each member all its pieces one after the other, padded to those of the
// longest. Weights may travel in bfloat16 (ParamRow::gathered_as): a message of theirs is bytes, and holds the float32 pieces of
// the bucket's other rows as well. It knows the places in messages, not when they are sent.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "parallel/shard/param_table.h"

namespace welkin::parallel {

class ShardBucket {
 public:
  ShardBucket() = default;
  // Rows of one element type that have their split; they outlive it.
  ShardBucket(std::vector<ParamRow*> rows, int64_t members);

  const std::vector<ParamRow*>& rows() const { return rows_; }
  int64_t members() const { return members_; }
  int64_t length() const { return length_; }  // elements of a member
  at::TensorOptions options() const;
  int64_t bytes() const;  // of all pieces without padding

  // (gathered length): this rank's pieces of the weights.
  at::Tensor packed_pieces() const;
  // For the pieces of all: (members, gathered length), not filled.
  at::Tensor room_for_all() const;
  // From such, of which each member's part is its packed pieces, into `memories`: (elements) of each row. A piece of `member`,
  // which calls it, is left as it is where it is a view of that memory.
  void unpack_whole(const at::Tensor& all, const std::vector<at::Tensor>& memories, int64_t member) const;

  // (members, length) in `dtype`: the gradients of the whole parameters, zero where there is none. They are let go.
  at::Tensor packed_gradients(at::ScalarType dtype) const;
  // Adds this member's part of their sum, (length), to the gradients of the pieces, which may keep its memory.
  void add_gradients(const at::Tensor& part, int64_t member) const;

 private:
  void place_bytes();
  // A member's piece of a row in a message of all: (count).
  at::Tensor arrived_piece(const at::Tensor& all, size_t row, int64_t member) const;
  // Of a member's part of a message of bytes: what the row's piece is there, (count).
  at::Tensor piece_in(const at::Tensor& bytes, size_t row, int64_t count) const;

  std::vector<ParamRow*> rows_;
  int64_t members_ = 1;
  std::vector<int64_t> places_;  // of each row's piece in a member's part
  int64_t length_ = 0;
  std::vector<int64_t> byte_places_;  // the same of gathered weights; empty where they travel in their own type
  int64_t byte_length_ = 0;
};

// The rows in runs of one element type, in their order.
std::vector<std::vector<ParamRow*>> runs_of_one_type(const std::vector<ParamRow*>& rows);

}  // namespace welkin::parallel
