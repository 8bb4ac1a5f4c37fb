// SPDX-License-Identifier: Apache-2.0
// Gradients of whole parameters become those of the pieces: summed over the group, of which each rank keeps its own part. A
// bucket is sent when the backward pass has all its gradients, and in the order of the buckets, so that every rank sends them
// alike, also one that went another way through the model.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "parallel/comm/collectives.h"
#include "parallel/sharding/shard_bucket.h"

namespace welkin::parallel {

// A rank holds one piece of the training state, of which `replicas` hold copies.
struct ShardGroups {
  Group shards;          // members have the pieces of one whole
  Group replicas;        // members have the same piece
  bool with_cp = false;  // context parallel ranks are among those that share
};

class ShardedGradients {
 public:
  // The buckets are of trained rows, those of one chunk side by side. `dtype`: in which gradients travel; nothing: their own.
  ShardedGradients(std::vector<ShardBucket> buckets, const ShardGroups& groups, std::optional<at::ScalarType> dtype);
  ShardedGradients(const ShardedGradients&) = delete;
  ShardedGradients& operator=(const ShardedGradients&) = delete;

  const std::vector<ShardBucket>& buckets() const { return buckets_; }

  // Called in the backward pass when a bucket has all its gradients, whether passes are reduced or not. Its number.
  std::function<void(size_t)> on_complete{};

  // Before a backward pass. Without `reduces` gradients stay those of the whole parameters, and add up there. `chunk`: of whose
  // parameters they are; nothing: of all.
  void begin_pass(bool reduces, std::optional<int64_t> chunk);
  // After it: what is missing counts as zero. Then the pieces have their gradients.
  void finish_pass();
  void clear();

 private:
  void install();
  void take(size_t bucket);
  void send_complete();
  void send(const ShardBucket& bucket);
  void land();

  struct Sent {
    const ShardBucket* bucket;
    at::Tensor whole, part;
    Transfer transfer;
  };

  std::vector<ShardBucket> buckets_;
  ShardGroups groups_;
  std::optional<at::ScalarType> dtype_;
  bool reduces_ = false;
  std::vector<size_t> missing_;  // gradients of each bucket, in this pass
  size_t next_ = 0, end_ = 0;    // buckets to be sent
  std::deque<Sent> sent_;
};

}  // namespace welkin::parallel
