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
       .summary =
           "action on a loss or gradient norm far above those of the last steps: warn, skip the update, or skip it and after "
           "spike_patience in a row go back to the last good state in memory",
       .null_is_first = true,
       .is_flag = true,
       .free = true},
      {.flat = "spike_factor",
       .path = "health.spike_factor",
       .field = kHealth<&H::spike_factor>,
       .summary = "how far above the median a spike is, in robust standard deviations (1.4826 times the median deviation)",
       .range = above(0),
       .is_flag = true,
       .free = true},
      {.flat = "spike_window",
       .path = "health.spike_window",
       .field = kHealth<&H::spike_window>,
       .summary = "good steps whose median and spread count; judged from a quarter of them on",
       .unit = "steps",
       .range = between(8, 4096),
       .is_flag = true,
       .free = true},
      {.flat = "spike_patience",
       .path = "health.spike_patience",
       .field = kHealth<&H::spike_patience>,
       .summary = "spikes in a row until the run goes back (rollback), or takes them for its new level (skip)",
       .unit = "steps",
       .range = at_least(1),
       .is_flag = true,
       .free = true},
      {.flat = "spike_lr_factor",
       .path = "health.spike_lr_factor",
       .field = kHealth<&H::spike_lr_factor>,
       .summary = "what the rate is multiplied by for spike_lr_steps updates after a spike that was skipped",
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
       .summary = "with on_spike=rollback: steps between copies of weights and optimizer in memory, of which one is kept",
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
       .summary = "steps between those whose gradients a rank computes twice and compares bit for bit; 0 = never",
       .unit = "steps",
       .range = at_least(0),
       .is_flag = true,
       .free = true},
      {.flat = "slow_rank_interval",
       .path = "health.slow_rank_interval",
       .field = kHealth<&H::slow_rank_interval>,
       .summary = "steps between comparisons of the times that ranks take for each phase; 0 = never",
       .unit = "steps",
       .range = at_least(0),
       .is_flag = true,
       .free = true},
      {.flat = "slow_rank_factor",
       .path = "health.slow_rank_factor",
       .field = kHealth<&H::slow_rank_factor>,
       .summary = "a rank is slow from so many times the median of all ranks on",
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
