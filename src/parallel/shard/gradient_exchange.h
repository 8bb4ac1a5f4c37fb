// SPDX-License-Identifier: Apache-2.0
// What data parallelism owes a training step: gradients that count the samples of all ranks. DataParallel keeps the whole
// training state on every rank; ShardedParallel (parallel/sharding) shares it out.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/schema/choices.h"
#include "parallel/comm/group.h"
#include "parallel/shard/param_table.h"

namespace welkin::parallel {

using config::GradientDtype;  // type in which gradients travel; stored gradients keep theirs

// What travels together, in the order in which it is sent.
struct Bucket {
  std::vector<size_t> parameters;  // rows of the table
  int64_t bytes = 0;
};

// Gradients come in the reverse order of the parameters: the first bucket is small (1 MiB), so that sending starts early, the
// others hold at most the cap, except where one parameter alone is larger.
std::vector<Bucket> plan_buckets(const ParamTable& table, int64_t bucket_cap_mb);

// "8 buckets: 1.5 25.0 ... MiB".
std::string describe(const std::vector<Bucket>& buckets);

// The first member's weights to all of the group.
void spread_weights(const ParamTable& table, const Group& group);

// One pass of a pipeline that adds to gradients.
struct GradientPass {
  int64_t chunk = 0;          // whose gradients these are: ParamRow::chunk
  bool ends_chunk = true;     // no later pass of the step adds to the chunk's
  bool ends_step = true;      // nor to any of this rank
  bool weights_wait = false;  // some weights' come in a pass of their own
};

class GradientExchange {
 public:
  virtual ~GradientExchange() = default;

  // Gradients of `loss`, (), accumulate. With `is_last` ParamRow::gradient() counts all ranks of the group when this returns.
  // CommError when a rank does not take part.
  virtual void backward(const at::Tensor& loss, bool is_last) = 0;
  // Whether gradients are then means over the ranks; else they are sums.
  virtual bool averages() const = 0;

  // Before the next step's first backward pass.
  virtual void clear_gradients() = 0;

  // Around each forward pass, in which weights are whole where they are used; and after the update of ParamRow::trained(), of
  // which other ranks may hear as late as in the next forward pass.
  virtual void before_forward() {}
  virtual void after_forward() {}
  virtual void after_update() {}

  // The same of passes of a pipeline, each of one chunk of the rank's part of the model: others' weights are not brought, and
  // their gradients not awaited. weights_of_chunk(): `compute` adds what has waited to the parameters' gradients.
  virtual void before_chunk(int64_t /*chunk*/) { before_forward(); }
  virtual void backward_chunk(const at::Tensor& root, const GradientPass& pass) { backward(root, pass.ends_step); }
  virtual void weights_of_chunk(const std::function<void()>& compute, const GradientPass& /*pass*/) { compute(); }

  // For who looks at weights outside of a forward pass: what every rank has whole is so when it returns. Every rank calls it.
  virtual void complete_weights() {}

  // Every rank of the group must make as many backward passes, or forward passes too, as any other.
  virtual bool joins_every_backward() const { return false; }
  virtual bool joins_every_forward() const { return false; }

  virtual std::vector<Bucket> buckets() const = 0;
  // Bytes of gradients that one step sends from this rank, before the collective's own algorithm.
  virtual int64_t bytes_per_step() const = 0;
};

}  // namespace welkin::parallel
