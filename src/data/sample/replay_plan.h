// SPDX-License-Identifier: Apache-2.0
// The schedule of a replay buffer. C. Bodnar et al., "Aurora" (2024, arXiv:2405.13063), trains rollouts on states that the
// model has predicted in earlier steps, kept in a buffer (L.-J. Lin 1992), at the cost of one step each.
//
// Each place of the batch (a lane) has slots of its own, and each slot holds a rollout: a sample of the data, then the states
// that follow it, one for each visit. A step of training visits one slot of a lane, every slot once in as many steps as there are
// slots, in an order that turns from cycle to cycle. All of it is a function of seed and place, and knows no ranks, threads or
// values.
#pragma once

#include <cstdint>

#include "data/sample/dataset.h"
#include "data/sample/sampler.h"

namespace welkin::data {

struct ReplayOptions {
  int64_t batch = 1;            // samples of a step over all ranks: lanes
  int64_t slots = 1;            // of a lane
  int64_t longest = 2;          // visits of a slot with one rollout, that of the sample itself among them
  int64_t steps_per_epoch = 1;  // of training
  uint64_t seed = 0;
};

// The choice for a sample of a step.
struct ReplayChoice {
  SampleKey key;      // of the sample at the state's time: the target and the channels known in advance are those of the data
  int64_t slot = 0;   // of its lane
  int64_t steps = 0;  // of the model that have led to the state; 0: the input is that of the data
};

class ReplayPlan {
 public:
  // `dataset`, whose samples follow each other in time, outlives it. A rollout begins with the sample that `sampler` has at its
  // place.
  ReplayPlan(const Dataset& dataset, const Sampler& sampler, const ReplayOptions& options);

  int64_t slots() const { return options_.slots; }
  int64_t batch() const { return options_.batch; }
  // Pure. `position` of the epoch, within its whole batches.
  ReplayChoice at(int64_t epoch, int64_t position) const;
  int64_t lane_of(int64_t position) const { return position % options_.batch; }

 private:
  int64_t turn_of(int64_t lane, int64_t cycle) const;
  SampleKey begun(int64_t lane, int64_t slot, int64_t cycle) const;

  const Dataset& dataset_;
  Sampler sampler_;
  ReplayOptions options_;
  uint64_t order_key_, phase_key_;
};

}  // namespace welkin::data
