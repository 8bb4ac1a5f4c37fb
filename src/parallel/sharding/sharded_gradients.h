// SPDX-License-Identifier: Apache-2.0
// Reduces gradients of whole parameters to gradients of pieces: summed over the group, each rank keeps its own part. A
// bucket is sent when the backward pass has all its gradients, and in the order of the buckets. So all ranks send them in the
// same order, even if one took another path through the model.
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

// Groups for sharding: a rank holds one piece of the training state, and `replicas` hold copies of the piece.
struct ShardGroups {
  Group shards;          // members have the pieces of one whole
  Group replicas;        // members have the same piece
  bool with_cp = false;  // context-parallel ranks are among `shards`
};

// Buckets that the memory limit counts as one: what would be one message if large parameters did not travel alone.
using GradientBatch = std::vector<ShardBucket>;

class ShardedGradients {
 public:
  // Batches, in the order in which they are sent, contain trained rows; those of one chunk are contiguous. `dtype`: type of sent
  // gradients; nothing: their own.
  ShardedGradients(std::vector<GradientBatch> batches, const ShardGroups& groups, std::optional<at::ScalarType> dtype);
  ShardedGradients(const ShardedGradients&) = delete;
  ShardedGradients& operator=(const ShardedGradients&) = delete;

  const std::vector<ShardBucket>& buckets() const { return buckets_; }

  // Called in the backward pass with a bucket's number when it has all its gradients, whether passes are reduced or not.
  std::function<void(size_t)> on_complete{};

  // Call it before a backward pass. Without `reduces` gradients stay those of the whole parameters, and accumulate there.
  // `chunk`: the chunk of these parameters; nothing: all.
  void begin_pass(bool reduces, std::optional<int64_t> chunk);
  // Call it after the pass: missing gradients count as zero. Then the pieces have their gradients.
  void finish_pass();
  void clear();

 private:
  void install();
  void take(size_t bucket);
  void send_complete();
  void send(size_t number);
  void land();

  struct Sent {
    const ShardBucket* bucket;
    size_t batch;
    at::Tensor whole, part;
    Transfer transfer;
  };

  std::vector<ShardBucket> buckets_;
  std::vector<size_t> batch_of_;  // of each bucket
  ShardGroups groups_;
  std::optional<at::ScalarType> dtype_;
  bool reduces_ = false;
  std::vector<size_t> missing_;  // number of missing gradients of each bucket, in this pass
  size_t next_ = 0, end_ = 0;    // buckets to be sent
  std::deque<Sent> sent_;
};

}  // namespace welkin::parallel
