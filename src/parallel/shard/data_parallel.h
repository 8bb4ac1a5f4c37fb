// SPDX-License-Identifier: Apache-2.0
// Replicas of a model on the ranks of a group: the same weights at the start, and gradients that are averaged over the group
// while the backward pass is still running, by c10d's Reducer. Model and optimizer know nothing of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/schema/choices.h"
#include "parallel/comm/group.h"
#include "parallel/shard/param_table.h"

namespace welkin::parallel {

using config::GradientDtype;

struct DataParallelOptions {
  int64_t bucket_cap_mb = 25;
  bool gradient_as_bucket_view = false;  // gradients live in the buckets: less memory, no copy
  bool static_graph = false;             // every step uses the same parameters in the same order, each perhaps several times
  GradientDtype comm_dtype = GradientDtype::Same;
  bool exchange = true;  // false: the ranks train apart, for measuring what the exchange costs
};

// What a bucket holds, in the order in which the buckets are sent.
struct Bucket {
  std::vector<size_t> parameters;  // rows of the table
  int64_t bytes = 0;
};

// Gradients come in the reverse order of the parameters: the first bucket is small (1 MiB), so that sending starts early, the
// others hold at most the cap, except where one parameter alone is larger.
std::vector<Bucket> plan_buckets(const ParamTable& table, int64_t bucket_cap_mb);

// "8 buckets: 1.5 25.0 ... MiB".
std::string describe(const std::vector<Bucket>& buckets);

class DataParallel {
 public:
  // Every rank of the group calls it: rank 0's weights go to all. Before the optimizer copies or views them. A group of one only
  // keeps gradients as they are.
  DataParallel(const ParamTable& table, const Group& group, const DataParallelOptions& options);
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  // Gradients of `loss`, (), accumulate. With `is_last` they are averaged over the group when this returns: the loss of each rank
  // counts equally, so that ranks weight theirs by their samples.
  // CommError when a rank does not take part.
  void backward(const at::Tensor& loss, bool is_last);

  // Before the next step's first backward pass: undefined, or zeroed in place where they are views.
  void clear_gradients();

  // As they are sent now; after the first step in the order in which gradients came.
  std::vector<Bucket> buckets() const;
  // Bytes that one step sends from this rank's gradients, before the collective's own algorithm.
  int64_t bytes_per_step() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace welkin::parallel
