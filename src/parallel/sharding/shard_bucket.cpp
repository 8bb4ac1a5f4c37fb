// SPDX-License-Identifier: Apache-2.0
#include "parallel/sharding/shard_bucket.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace welkin::parallel {
namespace {

// The gradient as (elements), in the order of the parameter's memory.
at::Tensor gradient_memory(const ParamRow& row) {
  const at::Tensor& gradient = row.local.grad();
  if (gradient.strides() == row.local.strides()) return memory_of(gradient);
  const at::Tensor ordered = at::empty_strided(row.local.sizes(), row.local.strides(), gradient.options());
  return memory_of(ordered.copy_(gradient));
}

}  // namespace

ShardBucket::ShardBucket(std::vector<ParamRow*> rows, int64_t members) : rows_(std::move(rows)), members_(members) {
  for (const ParamRow* row : rows_) {
    WELKIN_CHECK(row->split.members() == members && row->local.scalar_type() == rows_.front()->local.scalar_type(),
                 "a bucket holds pieces of one element type that are cut for its members");
    places_.push_back(length_);
    length_ += row->split.longest();
  }
  place_bytes();
}

// Wide pieces come first, so that each is aligned to its element size. The length is a multiple of the widest, for alignment.
void ShardBucket::place_bytes() {
  if (std::ranges::none_of(rows_, [](const ParamRow* row) { return row->gathered_as.has_value(); })) return;
  byte_places_.resize(rows_.size());
  for (const bool is_low : {false, true}) {
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i]->gathered_as.has_value() != is_low) continue;
      byte_places_[i] = byte_length_;
      byte_length_ += rows_[i]->split.longest() * static_cast<int64_t>(c10::elementSize(rows_[i]->gathered_type()));
    }
  }
  const auto widest = static_cast<int64_t>(rows_.front()->local.element_size());
  byte_length_ = (byte_length_ + widest - 1) / widest * widest;
}

at::Tensor ShardBucket::piece_in(const at::Tensor& bytes, size_t row, int64_t count) const {
  const at::ScalarType type = rows_[row]->gathered_type();
  return bytes.narrow(0, byte_places_[row], count * static_cast<int64_t>(c10::elementSize(type))).view(type);
}

at::TensorOptions ShardBucket::options() const { return rows_.front()->local.options().requires_grad(false); }

int64_t ShardBucket::bytes() const {
  int64_t bytes = 0;
  for (const ParamRow* row : rows_) bytes += static_cast<int64_t>(row->local.nbytes());
  return bytes;
}

at::Tensor ShardBucket::packed_pieces() const {
  const at::NoGradGuard no_grad;
  const bool is_bytes = !byte_places_.empty();
  if (is_memory() && !is_bytes) return rows_.front()->shard.detach().reshape({-1});
  at::Tensor part = is_bytes ? at::empty({byte_length_}, options().dtype(at::kByte)) : at::empty({length_}, options());
  for (size_t i = 0; i < rows_.size(); ++i) {
    const at::Tensor& shard = rows_[i]->shard;
    if (is_bytes) {
      piece_in(part, i, shard.numel()).copy_(shard.reshape({-1}));
      continue;
    }
    part.narrow(0, places_[i], shard.numel()).copy_(shard.reshape({-1}));
  }
  return part;
}

at::Tensor ShardBucket::room_for_all(const std::vector<at::Tensor>& memories) const {
  if (is_memory() && byte_places_.empty()) return memories.front().view({members_, length_});
  if (byte_places_.empty()) return at::empty({members_, length_}, options());
  return at::empty({members_, byte_length_}, options().dtype(at::kByte));
}

at::Tensor ShardBucket::arrived_piece(const at::Tensor& all, size_t row, int64_t member) const {
  const int64_t count = rows_[row]->split.numel(member);
  if (!byte_places_.empty()) return piece_in(all[member], row, count);
  return all[member].narrow(0, places_[row], count);
}

void ShardBucket::unpack_whole(const at::Tensor& all, const std::vector<at::Tensor>& memories, int64_t member) const {
  const at::NoGradGuard no_grad;
  // What arrived there did not pass through operators, which count changes.
  if (is_memory() && byte_places_.empty()) return memories.front().unsafeGetTensorImpl()->bump_version();
  for (size_t i = 0; i < rows_.size(); ++i) {
    const MemorySplit& split = rows_[i]->split;
    const bool is_view = !rows_[i]->keeps_shard();
    if (byte_places_.empty() && split.is_even() && !is_view) {
      memories[i].view({members_, split.longest()}).copy_(all.narrow(1, places_[i], split.longest()));
      continue;
    }
    for (int64_t other = 0; other < members_; ++other) {
      if (is_view && other == member) continue;
      memories[i].narrow(0, split.offset(other), split.numel(other)).copy_(arrived_piece(all, i, other));
    }
  }
}

at::Tensor ShardBucket::packed_gradients(at::ScalarType dtype) const {
  const at::NoGradGuard no_grad;
  if (const at::Tensor& gradient = rows_.front()->local.grad(); is_memory() && gradient.defined()) {
    at::Tensor all = gradient_memory(*rows_.front()).view({members_, length_}).to(dtype);
    rows_.front()->local.mutable_grad() = at::Tensor();
    return all;
  }
  at::Tensor all = at::empty({members_, length_}, options().dtype(dtype));
  for (size_t i = 0; i < rows_.size(); ++i) {
    const MemorySplit& split = rows_[i]->split;
    const at::Tensor place = all.narrow(1, places_[i], split.longest());
    if (!rows_[i]->local.grad().defined()) {
      place.zero_();
      continue;
    }
    const at::Tensor memory = gradient_memory(*rows_[i]);
    if (split.is_even()) {
      place.copy_(memory.view({members_, split.longest()}));
    } else {
      for (int64_t member = 0; member < members_; ++member) {
        const int64_t count = split.numel(member);
        place[member].narrow(0, 0, count).copy_(memory.narrow(0, split.offset(member), count));
        place[member].narrow(0, count, split.longest() - count).zero_();
      }
    }
    rows_[i]->local.mutable_grad() = at::Tensor();
  }
  return all;
}

void ShardBucket::add_gradients(const at::Tensor& part, int64_t member) const {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const at::Tensor& shard = rows_[i]->shard;
    const at::Tensor piece =
        part.narrow(0, places_[i], rows_[i]->split.numel(member)).view(shard.sizes()).to(shard.scalar_type());
    at::Tensor& gradient = shard.mutable_grad();
    if (gradient.defined()) {
      gradient.add_(piece);
    } else {
      gradient = piece;
    }
  }
}

std::vector<std::vector<ParamRow*>> rows_of_messages(const std::vector<ParamRow*>& rows) {
  std::vector<std::vector<ParamRow*>> messages;
  bool is_open = false;  // whether the last one takes more
  for (ParamRow* row : rows) {
    const bool is_own = row->split.is_even() && row->local.nbytes() >= ShardBucket::kLeastOfOwn;
    if (!is_open || is_own || messages.back().front()->local.scalar_type() != row->local.scalar_type()) messages.emplace_back();
    messages.back().push_back(row);
    is_open = !is_own;
  }
  return messages;
}

}  // namespace welkin::parallel
