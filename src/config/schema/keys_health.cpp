// SPDX-License-Identifier: Apache-2.0
// Rows of the component `health`.
#include "config/schema/key.h"

namespace welkin::config {
namespace {

template <auto... Members>
constexpr auto kHealth = &member<&RunConfig::health, Members...>;

using H = HealthConfig;

std::vector<Key> spike_keys() {
  return {
      {.flat = "on_spike",
       .path = "health.on_spike",
       .field = kHealth<&H::on_spike>,
       .summary = "action on a loss or gradient norm far above the last steps': warn, skip the update, or skip it and after "
                  "spike_patience in a row go back to the last good state in memory (rollback)",
       .null_is_first = true,
       .is_flag = true,
       .free = true},
      {.flat = "spike_factor",
       .path = "health.spike_factor",
       .field = kHealth<&H::spike_factor>,
       .summary = "distance of a spike from the median, in robust standard deviations (1.4826 times the median deviation)",
       .range = above(0),
       .is_flag = true,
       .free = true},
      {.flat = "spike_window",
       .path = "health.spike_window",
       .field = kHealth<&H::spike_window>,
       .summary = "good steps for median and spread; checks begin after a quarter of them",
       .unit = "steps",
       .range = between(8, 4096),
       .is_flag = true,
       .free = true},
      {.flat = "spike_patience",
       .path = "health.spike_patience",
       .field = kHealth<&H::spike_patience>,
       .summary = "spikes in a row before the run goes back (rollback) or accepts the new level (skip)",
       .unit = "steps",
       .range = at_least(1),
       .is_flag = true,
       .free = true},
      {.flat = "spike_lr_factor",
       .path = "health.spike_lr_factor",
       .field = kHealth<&H::spike_lr_factor>,
       .summary = "factor on the learning rate for spike_lr_steps updates after a skipped spike",
       .range = {.min = 0, .max = 1, .open_min = true},
       .is_flag = true,
       .free = true},
      {.flat = "spike_lr_steps",
       .path = "health.spike_lr_steps",
       .field = kHealth<&H::spike_lr_steps>,
       .summary = "updates with the lower rate; 0 = none",
       .unit = "steps",
       .range = at_least(0),
       .is_flag = true,
       .free = true},
      {.flat = "rollback_interval",
       .path = "health.rollback_interval",
       .field = kHealth<&H::rollback_interval>,
       .summary = "with on_spike=rollback: steps between copies of weights and optimizer in memory; one copy is kept",
       .unit = "steps",
       .range = at_least(1),
       .is_flag = true,
       .free = true},
  };
}

std::vector<Key> watch_keys() {
  return {
      {.flat = "recheck_interval",
       .path = "health.recheck_interval",
       .field = kHealth<&H::recheck_interval>,
       .summary = "steps between those that compute a rank's gradients twice and compare the bits; 0 = never",
       .unit = "steps",
       .range = at_least(0),
       .is_flag = true,
       .free = true},
      {.flat = "slow_rank_interval",
       .path = "health.slow_rank_interval",
       .field = kHealth<&H::slow_rank_interval>,
       .summary = "steps between comparisons of the ranks' times for each phase; 0 = never",
       .unit = "steps",
       .range = at_least(0),
       .is_flag = true,
       .free = true},
      {.flat = "slow_rank_factor",
       .path = "health.slow_rank_factor",
       .field = kHealth<&H::slow_rank_factor>,
       .summary = "a rank is slow from this multiple of the ranks' median on",
       .range = above(1),
       .is_flag = true,
       .free = true},
      {.flat = "status_interval_s",
       .path = "health.status_interval_s",
       .field = kHealth<&H::status_interval_s>,
       .summary = "time between writes of status.json and metrics.prom in the run folder; 0 = none",
       .unit = "s",
       .range = at_least(0),
       .is_flag = true,
       .free = true},
  };
}

}  // namespace

std::vector<Key> health_keys() {
  std::vector<Key> rows = spike_keys();
  const std::vector<Key> more = watch_keys();
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace welkin::config
