// SPDX-License-Identifier: Apache-2.0
// The number of model steps for which a sample is trained at a place of the run: `multistep` with the lengths of its parts.
#pragma once

#include <cstdint>

#include "config/schema/run_config.h"
#include "data/sample/dataset.h"

namespace welkin::train {

// The number for the optimizer step after `iterations` of the run, in the epoch of this number, from 0. Pure, so that a resumed
// run goes on like the uninterrupted one.
int64_t steps_at(const config::LossConfig& config, int64_t epoch, int64_t iterations);

// True if samples have more than one step anywhere in the run: fields alone have steps.
bool has_sequences(const config::RunConfig& config, const data::SampleSpec& spec);
// The specification of the loader's longest samples; `spec` itself if they have one step.
data::SampleSpec longest_sample(const config::RunConfig& config, const data::SampleSpec& spec);

// The members that a training step makes from a sample; 1 for boxes.
int64_t ensemble_members(const config::RunConfig& config, const data::SampleSpec& spec);

}  // namespace welkin::train
