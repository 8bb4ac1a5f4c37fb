// SPDX-License-Identifier: Apache-2.0
// The effect of the configured rules (config::RuleConfig) on a run: its length, and how validation goes through its samples.
#pragma once

#include <cstdint>

#include "config/schema/run_config.h"
#include "data/sample/sampler.h"
#include "train/checkpoint/checkpoint.h"
#include "train/learn/lr_schedule.h"

namespace welkin::train {

// `samples` of a training epoch; `steps_per_epoch` of the loader. ConfigError when the rules leave no step.
RunLength run_length(const config::RunConfig& config, int64_t samples, int64_t steps_per_epoch);

// True if the initial losses take the first batches out of the first epoch.
bool consumes_first_batch(const config::RunConfig& config);

// The way in which validation goes through its samples: each one once (ours), or as a tutorial does.
bool validation_drops_last(const config::RunConfig& config);
bool validation_averages_batches(const config::RunConfig& config);  // else samples
// SC21, SC22: drawn anew for each epoch. SC23, DL4SCI25: in the order of the files on several ranks, shuffled on one.
data::Order validation_order(const config::RunConfig& config, int64_t num_shards);

// CheckpointError if the checkpoint was saved by another optimizer. States of the same names may have other units: SGD's
// momentum is one of gradients, LARS's one of steps.
void check_same_optimizer(const Checkpoint& checkpoint, const config::RunConfig& config, const CheckpointGroup& states);

}  // namespace welkin::train
