// SPDX-License-Identifier: Apache-2.0
// Weights that every rank has whole, while it updates only its pieces. After an update they are gathered unit by unit, in the
// order of the forward pass and beside it. A pass waits for a unit when it comes to it; the next ones are in flight meanwhile.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel/comm/collectives.h"
#include "parallel/sharding/shard_bucket.h"
#include "parallel/sharding/weight_units.h"

namespace welkin::parallel {

class UpdatedUnits {
 public:
  // Takes the units' trained rows, which have their pieces. `prefetch`: units in flight besides the one that is waited for.
  // Every rank of the group calls all functions in the same order.
  UpdatedUnits(const std::vector<WeightUnit>& units, const Group& group, int64_t prefetch);
  UpdatedUnits(const UpdatedUnits&) = delete;
  UpdatedUnits& operator=(const UpdatedUnits&) = delete;

  void start();           // call it when the pieces have changed
  void before_forward();  // on return, weights outside of the units' sites are whole
  void complete();        // on return, all weights are whole

 private:
  struct Message {
    ShardBucket bucket;
    at::Tensor all;
    Transfer transfer{};
  };
  using Unit = std::vector<Message>;

  void add(const WeightUnit& unit, bool is_outside);
  void send_until(size_t end);
  void need(size_t end);
  void send(Message& message) const;
  void land(Message& message) const;

  Group group_;
  size_t prefetch_;
  std::vector<Unit> units_;
  size_t num_outside_ = 0;        // units that are waited for before a pass, so that sites of matmuls have no wrapper
  size_t sent_ = 0, landed_ = 0;  // numbers of units so far
};

}  // namespace welkin::parallel
