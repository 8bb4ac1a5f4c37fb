// SPDX-License-Identifier: Apache-2.0
#include "data/sample/epoch_plan.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace welkin::data {

int64_t sharded_samples(int64_t num_samples, int64_t num_shards, ShardRule shard_rule) {
  if (shard_rule == ShardRule::Exact) return num_samples;
  const int64_t rounded = shard_rule == ShardRule::Padded ? num_samples + num_shards - 1 : num_samples;
  return rounded / num_shards * num_shards;
}

EpochPlan::EpochPlan(const EpochPlanOptions& options) : options_(options) {
  const bool in_range = options_.shard >= 0 && options_.shard < options_.num_shards;
  WELKIN_CHECK(in_range && options_.global_batch > 0 && options_.micro_batch > 0, "a shard or batch size out of range");
  sharded_ = sharded_samples(options_.num_samples, options_.num_shards, options_.shard_rule);
  const int64_t rounded = options_.drop_last ? 0 : options_.global_batch - 1;
  steps_ = (sharded_ + rounded) / options_.global_batch;
  if (steps_ > 0) return;
  throw DataError(
      "data",
      cat("the batch is larger than the data: global_batch_size=", options_.global_batch, ", samples=", options_.num_samples),
      "Reduce global_batch_size or give more data");
}

MicroBatch EpochPlan::at(int64_t epoch, int64_t step, int64_t micro) const {
  WELKIN_CHECK(step >= 0 && step < steps_, "a step outside the epoch");
  const int64_t begin = step * options_.global_batch;
  const int64_t samples = std::min(options_.global_batch, sharded_ - begin);
  const int64_t own_begin = samples * options_.shard / options_.num_shards;
  const int64_t own = samples * (options_.shard + 1) / options_.num_shards - own_begin;
  MicroBatch batch{.epoch = epoch, .step = step, .micro = micro, .step_samples = own};
  batch.num_micro = std::max<int64_t>(1, (own + options_.micro_batch - 1) / options_.micro_batch);
  WELKIN_CHECK(micro >= 0 && micro < batch.num_micro, "a micro-batch outside the step");
  batch.first_position = begin + own_begin + micro * options_.micro_batch;
  batch.count = std::min(options_.micro_batch, own - micro * options_.micro_batch);
  return batch;
}

MicroBatch EpochPlan::after(const MicroBatch& batch) const {
  if (batch.micro + 1 < batch.num_micro) return at(batch.epoch, batch.step, batch.micro + 1);
  if (batch.step + 1 < steps_) return at(batch.epoch, batch.step + 1, 0);
  return at(batch.epoch + 1, 0, 0);
}

}  // namespace welkin::data
