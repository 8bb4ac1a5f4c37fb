// SPDX-License-Identifier: Apache-2.0
// For how many steps of the model a sample is trained at a place of the run: `multistep` with the lengths of its parts.
#pragma once

#include <cstdint>

#include "config/schema/run_config.h"
#include "data/sample/dataset.h"

namespace welkin::train {

// Of the optimizer step that comes after `iterations` of the run, in the epoch of this number, from 0. Pure, so that a resumed
// run goes on as the uninterrupted one.
int64_t steps_at(const config::LossConfig& config, int64_t epoch, int64_t iterations);

// Whether samples have more than one step somewhere in the run: fields alone have steps.
bool has_sequences(const config::RunConfig& config, const data::SampleSpec& spec);
// What a sample of the loader is where it has most steps; `spec` itself where there is but one.
data::SampleSpec longest_sample(const config::RunConfig& config, const data::SampleSpec& spec);

// That a training step makes of a sample; 1 of boxes.
int64_t ensemble_members(const config::RunConfig& config, const data::SampleSpec& spec);

}  // namespace welkin::train
