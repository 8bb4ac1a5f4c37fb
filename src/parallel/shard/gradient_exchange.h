// SPDX-License-Identifier: Apache-2.0
// The exchange of gradients in a data-parallel step, so that they count the samples of all ranks. DataParallel keeps the whole
// training state on every rank; ShardedParallel (parallel/sharding) shards it.
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

using config::GradientDtype;  // type of sent gradients; stored gradients keep theirs

// Gradients sent in one message. Buckets are sent in order.
struct Bucket {
  std::vector<size_t> parameters;  // rows of the table
  int64_t bytes = 0;
};

// Gradients arrive in the reverse order of the parameters. The first bucket is small (1 MiB), so that sending starts early. The
// others hold at most the cap, unless one parameter alone is larger.
std::vector<Bucket> plan_buckets(const ParamTable& table, int64_t bucket_cap_mb);

// "8 buckets: 1.5 25.0 ... MiB".
std::string describe(const std::vector<Bucket>& buckets);

// Sends the first member's weights to all of the group.
void spread_weights(const ParamTable& table, const Group& group);

// One pass of a pipeline that adds to gradients.
struct GradientPass {
  int64_t chunk = 0;          // the chunk of these gradients: ParamRow::chunk
  bool ends_chunk = true;     // no later pass of the step adds to the chunk's gradients
  bool ends_step = true;      // no later pass of the step adds to any gradient of this rank
  bool weights_wait = false;  // gradients of some weights follow in their own pass
};

class GradientExchange {
 public:
  virtual ~GradientExchange() = default;

  // Accumulates the gradients of `loss`, (). With `is_last` ParamRow::gradient() counts all ranks of the group on return.
  // CommError when a rank does not take part.
  virtual void backward(const at::Tensor& loss, bool is_last) = 0;
  // True if gradients are then means over the ranks; else they are sums.
  virtual bool averages() const = 0;

  // Call it before the next step's first backward pass.
  virtual void clear_gradients() = 0;

  // Called around each forward pass, in which weights are whole where they are used, and after the update of
  // ParamRow::trained(), which other ranks may receive as late as in the next forward pass.
  virtual void before_forward() {}
  virtual void after_forward() {}
  virtual void after_update() {}

  // The same for passes of a pipeline, each of one chunk of the rank's part of the model: weights of other chunks are not
  // fetched, their gradients not awaited. weights_of_chunk(): `compute` adds delayed gradients to the parameters' gradients.
  virtual void before_chunk(int64_t /*chunk*/) { before_forward(); }
  virtual void backward_chunk(const at::Tensor& root, const GradientPass& pass) { backward(root, pass.ends_step); }
  virtual void weights_of_chunk(const std::function<void()>& compute, const GradientPass& /*pass*/) { compute(); }

  // For readers of weights outside of a forward pass: on return every rank has its whole weights. Every rank calls it.
  virtual void complete_weights() {}

  // True if every rank of the group must make as many backward (or forward) passes as any other.
  virtual bool joins_every_backward() const { return false; }
  virtual bool joins_every_forward() const { return false; }

  virtual std::vector<Bucket> buckets() const = 0;
  // Bytes of gradients that one step sends from this rank, not counting the collective's own algorithm.
  virtual int64_t bytes_per_step() const = 0;
};

}  // namespace welkin::parallel
