// SPDX-License-Identifier: Apache-2.0
// Parameters whose pieces share one message: for each member all its pieces one after the other, padded to the longest member's
// length. Weights may be sent in bfloat16 (ParamRow::gathered_as). Their message consists of bytes, and holds the float32
// pieces of the bucket's other rows as well. A large parameter of pieces of equal length is sent from its own memory, and
// received there, where it has its bucket to itself. This class knows offsets in messages, not when they are sent.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "parallel/shard/param_table.h"

namespace welkin::parallel {

class ShardBucket {
 public:
  // Bytes from which a parameter gets its own message: packing would need as much memory again, and two copies.
  static constexpr size_t kLeastOfOwn = size_t{1} << 20;

  ShardBucket() = default;
  // Rows of one element type that are already split; they outlive this object.
  ShardBucket(std::vector<ParamRow*> rows, int64_t members);

  const std::vector<ParamRow*>& rows() const { return rows_; }
  int64_t members() const { return members_; }
  int64_t length() const { return length_; }  // elements of a member
  at::TensorOptions options() const;
  int64_t bytes() const;  // of all pieces without padding

  // (gathered length): this rank's pieces of the weights. A piece that is sent from its own memory is a view.
  at::Tensor packed_pieces() const;
  // Where the pieces of all arrive: (members, gathered length), not initialised, or the memory of the parameter, (elements) per
  // row, that needs no unpacking.
  at::Tensor room_for_all(const std::vector<at::Tensor>& memories) const;
  // Unpacks a gathered buffer, where each member's part is its packed pieces, into `memories`: (elements) per row. A piece of
  // `member`, the caller, stays unchanged if it is a view of that memory.
  void unpack_whole(const at::Tensor& all, const std::vector<at::Tensor>& memories, int64_t member) const;

  // (members, length) in `dtype`: the gradients of the whole parameters, zero if undefined. The parameters keep none; one that is
  // sent from its own memory lives as long as the result.
  at::Tensor packed_gradients(at::ScalarType dtype) const;
  // Adds this member's part of the summed gradients, (length), to the gradients of the pieces, which may keep its memory.
  void add_gradients(const at::Tensor& part, int64_t member) const;

 private:
  // Whether a message of the row alone is its memory.
  bool is_memory() const { return rows_.size() == 1 && rows_.front()->split.is_even(); }
  void place_bytes();
  // A member's piece of a row in a gathered buffer: (count).
  at::Tensor arrived_piece(const at::Tensor& all, size_t row, int64_t member) const;
  // The row's piece in a member's part of a message of bytes, (count).
  at::Tensor piece_in(const at::Tensor& bytes, size_t row, int64_t count) const;

  std::vector<ParamRow*> rows_;
  int64_t members_ = 1;
  std::vector<int64_t> places_;  // offset of each row's piece in a member's part
  int64_t length_ = 0;
  std::vector<int64_t> byte_places_;  // byte offsets of gathered weights; empty if they are sent in their own type
  int64_t byte_length_ = 0;
};

// Splits rows, which are cut for their members, into those of one message each, in order: runs of one element type, and each
// large parameter of equal pieces by itself.
std::vector<std::vector<ParamRow*>> rows_of_messages(const std::vector<ParamRow*>& rows);

}  // namespace welkin::parallel
