// SPDX-License-Identifier: Apache-2.0
// Replicas of a model on the ranks of a group: equal weights at the start, and gradients that c10d's Reducer averages over the
// group during the backward pass. Model and optimizer do not depend on it.
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
  bool sum_in_buckets = false;  // gradients of several passes accumulate in the buckets: less memory, one more pass over it
  bool static_graph = false;    // every step uses the same parameters in the same order, some perhaps several times
  GradientDtype comm_dtype = GradientDtype::Same;
  bool exchange = true;  // false: the ranks train separately, to measure the cost of the exchange
};

class DataParallel final : public GradientExchange {
 public:
  // Every rank of the group calls it: rank 0's weights are sent to all. Call it before the optimizer copies or views them. A
  // group of one keeps gradients unchanged.
  DataParallel(const ParamTable& table, const Group& group, const DataParallelOptions& options);
  ~DataParallel() override;
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  // With `is_last` gradients are averaged over the group on return. The loss of each rank counts equally, so ranks weight
  // theirs by their samples.
  void backward(const at::Tensor& loss, bool is_last) override;
  bool averages() const override { return true; }

  // Makes gradients undefined, or zeroes them in place with sum_in_buckets. Undefined ones are divided on the way to a bucket.
  void clear_gradients() override;

  // The current buckets; after the first step in the order in which gradients arrived.
  std::vector<Bucket> buckets() const override;
  int64_t bytes_per_step() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace welkin::parallel
