// SPDX-License-Identifier: Apache-2.0
// Replicas of a model on the ranks of a group: the same weights at the start, and gradients that are averaged over the group
// while the backward pass is still running, by c10d's Reducer. Model and optimizer know nothing of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "config/schema/choices.h"
#include "parallel/comm/group.h"
#include "parallel/shard/gradient_exchange.h"
#include "parallel/shard/param_table.h"

namespace welkin::parallel {

struct DataParallelOptions {
  int64_t bucket_cap_mb = 25;
  bool sum_in_buckets = false;  // gradients of several passes add up in the buckets: less memory, one more pass over it
  bool static_graph = false;    // every step uses the same parameters in the same order, each perhaps several times
  GradientDtype comm_dtype = GradientDtype::Same;
  bool exchange = true;  // false: the ranks train apart, for measuring what the exchange costs
};

class DataParallel final : public GradientExchange {
 public:
  // Every rank of the group calls it: rank 0's weights go to all. Before the optimizer copies or views them. A group of one only
  // keeps gradients as they are.
  DataParallel(const ParamTable& table, const Group& group, const DataParallelOptions& options);
  ~DataParallel() override;
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  // With `is_last` gradients are averaged over the group when this returns: the loss of each rank counts equally, so that ranks
  // weight theirs by their samples.
  void backward(const at::Tensor& loss, bool is_last) override;
  bool averages() const override { return true; }

  // Undefined, or zeroed in place with sum_in_buckets. A gradient that was undefined is divided on its way into its bucket.
  void clear_gradients() override;

  // As they are sent now; after the first step in the order in which gradients came.
  std::vector<Bucket> buckets() const override;
  int64_t bytes_per_step() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace welkin::parallel
