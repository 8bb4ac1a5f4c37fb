// SPDX-License-Identifier: Apache-2.0
// What the configured rules (config::RuleConfig) make of a run: how long it is, and how validation goes through its samples.
#pragma once

#include <cstdint>

#include "config/schema/run_config.h"
#include "data/sample/sampler.h"
#include "train/checkpoint/checkpoint.h"
#include "train/learn/lr_schedule.h"

namespace welkin::train {

// `samples`: of a training epoch; `steps_per_epoch`: what the loader makes of them. ConfigError when the rules leave no step.
RunLength run_length(const config::RunConfig& config, int64_t samples, int64_t steps_per_epoch);

// Whether the initial losses take the first batches out of the first epoch.
bool consumes_first_batch(const config::RunConfig& config);

// How validation goes through its samples: every one once (ours), or a tutorial's way.
bool validation_drops_last(const config::RunConfig& config);
bool validation_averages_batches(const config::RunConfig& config);  // else samples
// SC21, SC22: drawn anew for each epoch. SC23, DL4SCI25: in the order of the files over several ranks, shuffled on one.
data::Order validation_order(const config::RunConfig& config, int64_t num_shards);

// CheckpointError where the checkpoint was saved by another optimizer. States of the same names may have other units: the
// momentum of SGD is of gradients, that of LARS of steps.
void check_same_optimizer(const Checkpoint& checkpoint, const config::RunConfig& config, const CheckpointGroup& states);

}  // namespace welkin::train
