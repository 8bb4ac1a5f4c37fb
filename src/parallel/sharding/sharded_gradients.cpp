// SPDX-License-Identifier: Apache-2.0
#include "parallel/sharding/sharded_gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "parallel/shard/parameter_memory.h"

namespace welkin::parallel {
ShardedGradients::ShardedGradients(std::vector<GradientBatch> batches, const ShardGroups& groups,
                                   std::optional<at::ScalarType> dtype)
    : groups_(groups), dtype_(dtype) {
  for (size_t batch = 0; batch < batches.size(); ++batch) {
    for (ShardBucket& bucket : batches[batch]) {
      buckets_.push_back(std::move(bucket));
      batch_of_.push_back(batch);
    }
  }
  install();
}

void ShardedGradients::install() {
  for (size_t i = 0; i < buckets_.size(); ++i) {
    for (const ParamRow* row : buckets_[i].rows()) {
      on_gradient(row->local, [this, i] { take(i); });
    }
  }
}

void ShardedGradients::begin_pass(bool reduces, std::optional<int64_t> chunk) {
  const auto is_asked = [&](const ShardBucket& bucket) { return !chunk || bucket.rows().front()->chunk == *chunk; };
  reduces_ = reduces;
  next_ = static_cast<size_t>(std::ranges::find_if(buckets_, is_asked) - buckets_.begin());
  end_ = next_ + static_cast<size_t>(std::ranges::count_if(buckets_, is_asked));
  missing_.clear();
  for (const ShardBucket& bucket : buckets_) missing_.push_back(bucket.rows().size());
}

void ShardedGradients::take(size_t bucket) {
  if (missing_.empty() || --missing_[bucket] > 0) return;  // another pass's gradient
  if (reduces_) send_complete();
  if (on_complete) on_complete(bucket);
}

void ShardedGradients::send_complete() {
  for (; next_ < end_ && missing_[next_] == 0; ++next_) send(next_);
}

// Two batches are under way at most: one is filled while the other is sent.
void ShardedGradients::send(size_t number) {
  const ShardBucket& bucket = buckets_[number];
  if (!sent_.empty() && sent_.back().batch != batch_of_[number]) {
    while (sent_.front().batch != sent_.back().batch) land();
  }
  const at::NoGradGuard no_grad;
  Sent sent{.bucket = &bucket,
            .batch = batch_of_[number],
            .whole = bucket.packed_gradients(dtype_.value_or(bucket.rows().front()->local.scalar_type())),
            .part = {},
            .transfer = {}};
  sent.part = at::empty({bucket.length()}, sent.whole.options());
  sent.transfer = start_reduce_scatter_into(groups_.shards, sent.part, sent.whole);
  sent_.push_back(std::move(sent));
}

void ShardedGradients::land() {
  Sent sent = std::move(sent_.front());
  sent_.pop_front();
  sent.transfer.wait();
  all_reduce_in_place(groups_.replicas, sent.part);
  sent.bucket->add_gradients(sent.part, groups_.shards.group_rank());
}

void ShardedGradients::finish_pass() {
  if (reduces_) {
    for (; next_ < end_; ++next_) send(next_);
    while (!sent_.empty()) land();
  }
  missing_.clear();
}

void ShardedGradients::clear() {
  for (const ShardBucket& bucket : buckets_) {
    for (const ParamRow* row : bucket.rows()) {
      row->local.mutable_grad() = at::Tensor();
      row->shard.mutable_grad() = at::Tensor();
    }
  }
}

}  // namespace welkin::parallel
