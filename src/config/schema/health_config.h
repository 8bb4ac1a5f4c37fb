// SPDX-License-Identifier: Apache-2.0
// Keys for the health of a run: spikes of loss and gradient, silent corruption, slow ranks, and reports to a monitor.
#pragma once

#include <cstdint>

#include "config/schema/choices.h"

namespace welkin::config {

struct HealthConfig {
  SpikeAction on_spike = SpikeAction::Off;  // (ours) the action for a loss or gradient norm far above the window's
  double spike_factor = 10.0;               // (ours) distance of a spike: robust standard deviations above the median
  int64_t spike_window = 64;                // (ours) steps whose median and spread count; judged from a quarter of them on
  int64_t spike_patience = 3;               // (ours) rollback: spikes in a row, until the last good state comes back
  double spike_lr_factor = 1.0;             // (ours) factor of the rate, after a step that was skipped or rolled back
  int64_t spike_lr_steps = 0;               // (ours) updates for which that factor holds
  int64_t rollback_interval = 100;          // (ours) rollback: steps between copies of the state in memory
  int64_t recheck_interval = 0;             // (ours) steps from one whose gradients are computed twice to the next; 0 = never
  int64_t slow_rank_interval = 0;           // (ours) steps between comparisons of the ranks' times; 0 = never
  double slow_rank_factor = 1.5;            // (ours) a slow rank's time over the median of all
  double status_interval_s = 10.0;          // (ours) seconds between writes of status.json and metrics.prom; 0 = none

  bool operator==(const HealthConfig&) const = default;
};

}  // namespace welkin::config
