// SPDX-License-Identifier: Apache-2.0
#include "data/sample/replay_plan.h"

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/philox.h"

namespace welkin::data {
namespace {

int64_t drawn_below(uint64_t key, int64_t high, int64_t low, int64_t bound) {
  const PhiloxBlock draw = philox(key, static_cast<uint64_t>(high), static_cast<uint64_t>(low));
  return static_cast<int64_t>(bounded(draw[1], draw[0], static_cast<uint64_t>(bound)));
}

}  // namespace

ReplayPlan::ReplayPlan(const Dataset& dataset, const Sampler& sampler, const ReplayOptions& options)
    : dataset_(dataset),
      sampler_(sampler),
      options_(options),
      order_key_(stream_key(options.seed, "replay order")),
      phase_key_(stream_key(options.seed, "replay phase")) {
  const bool is_sound = options_.batch > 0 && options_.slots > 0 && options_.longest > 0 && options_.steps_per_epoch > 0;
  WELKIN_CHECK(is_sound, "a replay buffer of no size");
}

// Number of slots by which the order of a cycle is rotated.
int64_t ReplayPlan::turn_of(int64_t lane, int64_t cycle) const { return drawn_below(order_key_, lane, cycle, options_.slots); }

// The sample that the order of the run has at the slot's visit in that cycle.
SampleKey ReplayPlan::begun(int64_t lane, int64_t slot, int64_t cycle) const {
  const int64_t within = (slot - turn_of(lane, cycle) + options_.slots) % options_.slots;
  const int64_t step = cycle * options_.slots + within;
  return sampler_.at(step / options_.steps_per_epoch, step % options_.steps_per_epoch * options_.batch + lane);
}

// Rollouts of a lane's slots end at different times, so that each step has all of their lengths.
ReplayChoice ReplayPlan::at(int64_t epoch, int64_t position) const {
  const int64_t lane = lane_of(position), step = epoch * options_.steps_per_epoch + position / options_.batch;
  const int64_t cycle = step / options_.slots;
  ReplayChoice choice;
  choice.slot = (step % options_.slots + turn_of(lane, cycle)) % options_.slots;
  const int64_t phase = drawn_below(phase_key_, lane, choice.slot, options_.longest);
  const int64_t first = std::max<int64_t>(0, cycle - (cycle + phase) % options_.longest);
  choice.key = begun(lane, choice.slot, first);
  for (int64_t visit = first + 1; visit <= cycle; ++visit) {
    const std::optional<int64_t> next = dataset_.following(choice.key.index);
    choice.key = next ? SampleKey{*next, choice.key.draw} : begun(lane, choice.slot, visit);
    choice.steps = next ? choice.steps + 1 : 0;
  }
  return choice;
}

}  // namespace welkin::data
