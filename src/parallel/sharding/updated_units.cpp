// SPDX-License-Identifier: Apache-2.0
#include "parallel/sharding/updated_units.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

namespace welkin::parallel {
namespace {

std::vector<at::Tensor> memories_of(const ShardBucket& bucket) {
  std::vector<at::Tensor> memories;
  for (const ParamRow* row : bucket.rows()) memories.push_back(memory_of(row->local));
  return memories;
}

}  // namespace

UpdatedUnits::UpdatedUnits(const std::vector<WeightUnit>& units, const Group& group, int64_t prefetch)
    : group_(group), prefetch_(static_cast<size_t>(prefetch)) {
  for (const bool is_outside : {true, false}) {
    for (const WeightUnit& unit : units) {
      if (is_outside == (unit.site == nullptr || unit.is_matmul)) add(unit, is_outside);
    }
    if (is_outside) num_outside_ = units_.size();
  }
  sent_ = landed_ = units_.size();
}

void UpdatedUnits::add(const WeightUnit& unit, bool is_outside) {
  std::vector<ParamRow*> trained = unit.rows;
  std::erase_if(trained, [](const ParamRow* row) { return !row->shard.defined(); });
  if (trained.empty()) return;
  Unit& messages = units_.emplace_back();
  for (std::vector<ParamRow*>& rows : rows_of_messages(trained)) {
    messages.push_back({.bucket = ShardBucket(std::move(rows), group_.size()), .all = {}});
  }
  if (is_outside) return;
  unit.site->install([this, end = units_.size()](model::Tensors in, const model::Body& body) {
    need(end);
    return body(std::move(in));
  });
}

// First completes messages that a pass has left in flight.
void UpdatedUnits::start() {
  complete();
  sent_ = landed_ = 0;
  send_until(prefetch_ == 0 ? 0 : prefetch_ + 1);
}

void UpdatedUnits::before_forward() { need(num_outside_); }

void UpdatedUnits::complete() { need(units_.size()); }

void UpdatedUnits::send(Message& message) const {
  const at::Tensor part = message.bucket.packed_pieces();
  message.all = message.bucket.room_for_all(memories_of(message.bucket));
  message.transfer = start_all_gather_into(group_, message.all, part);
}

void UpdatedUnits::land(Message& message) const {
  message.transfer.wait();
  message.bucket.unpack_whole(message.all, memories_of(message.bucket), group_.group_rank());
  message.all = at::Tensor();
}

void UpdatedUnits::send_until(size_t end) {
  for (; sent_ < std::min(end, units_.size()); ++sent_) {
    for (Message& message : units_[sent_]) send(message);
  }
}

void UpdatedUnits::need(size_t end) {
  const at::NoGradGuard no_grad;
  while (landed_ < end) {
    send_until(landed_ + 1 + prefetch_);
    for (Message& message : units_[landed_++]) land(message);
  }
}

}  // namespace welkin::parallel
