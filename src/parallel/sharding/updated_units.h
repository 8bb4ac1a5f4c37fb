// SPDX-License-Identifier: Apache-2.0
// Weights that every rank has whole and updates its pieces of: after an update they are gathered unit by unit, in the order of
// the forward pass and beside it. A unit is waited for when the pass comes to it; the next ones are on the way meanwhile.
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
  // Of the units' trained rows, which have their pieces. `prefetch`: units on the way besides the one that is waited for. Every
  // rank of the group calls everything here in the same order.
  UpdatedUnits(const std::vector<WeightUnit>& units, const Group& group, int64_t prefetch);
  UpdatedUnits(const UpdatedUnits&) = delete;
  UpdatedUnits& operator=(const UpdatedUnits&) = delete;

  void start();           // the pieces have changed
  void before_forward();  // what stands outside of the units' sites is whole when it returns
  void complete();        // all are

 private:
  struct Unit {
    ShardBucket bucket;
    at::Tensor all;
    Transfer transfer{};
  };

  void add(const WeightUnit& unit, bool is_outside);
  void send_until(size_t end);
  void need(size_t end);

  Group group_;
  size_t prefetch_;
  std::vector<Unit> units_;
  size_t num_outside_ = 0;        // units that are waited for before a pass, so that sites of matmuls stay as they are
  size_t sent_ = 0, landed_ = 0;  // units so far
};

}  // namespace welkin::parallel
