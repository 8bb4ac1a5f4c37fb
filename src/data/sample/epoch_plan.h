// SPDX-License-Identifier: Apache-2.0
// Splits the positions of an epoch into steps, shards and micro-batches. Pure arithmetic; the same on every rank.
#pragma once

#include <cstdint>

#include "config/schema/choices.h"

namespace welkin::data {

// The split of an epoch's samples into R shards: as they are, repeated from the start up to a multiple of R (PyTorch's
// DistributedSampler), or cut down to one (the tutorials' DALI readers).
using config::ShardRule;

// Positions of an epoch that are split. Pure.
int64_t sharded_samples(int64_t num_samples, int64_t num_shards, ShardRule shard_rule);

struct EpochPlanOptions {
  int64_t num_samples = 0;
  int64_t global_batch = 1;
  int64_t micro_batch = 1;
  int64_t shard = 0;
  int64_t num_shards = 1;
  bool drop_last = true;
  ShardRule shard_rule = ShardRule::Exact;
};

// A run of positions that one batch holds.
struct MicroBatch {
  int64_t epoch = 0, step = 0, micro = 0;
  int64_t num_micro = 1;       // of this step on this shard, at least 1
  int64_t step_samples = 0;    // of this step on this shard
  int64_t first_position = 0;  // in the epoch
  int64_t count = 0;           // samples; 0 only where a short last step leaves this shard none
};

class EpochPlan {
 public:
  // DataError when the options leave no step (a batch larger than the data); InternalError for a shard outside [0, num_shards).
  explicit EpochPlan(const EpochPlanOptions& options);

  int64_t steps_per_epoch() const { return steps_; }
  MicroBatch at(int64_t epoch, int64_t step, int64_t micro) const;
  MicroBatch after(const MicroBatch& batch) const;  // the next one, in the next epoch where this was the last

 private:
  EpochPlanOptions options_;
  int64_t sharded_ = 0;  // positions
  int64_t steps_ = 0;
};

}  // namespace welkin::data
