// SPDX-License-Identifier: Apache-2.0
// Checks of the beginning of a run: data, rates and grid. They cost nothing after the first batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "data/sample/dataset.h"

namespace welkin::train {

// DataError if a channel of the batch (B, C, ...) lies 20 standard deviations or more from its mean on average: then the
// statistics belong to other data. Waits for the device. Data without statistics pass.
void check_normalised(const at::Tensor& input, const data::SampleSpec& spec);

// One line each: a rate too large for training, a warm-up that does not end, an end above the beginning.
std::vector<std::string> doubtful_rates(const config::RunConfig& config, int64_t total_steps);

// One line each for a model that goes around the globe (ModelEntry::around_globe, empty: it does not): longitudes that do not
// go around, and, for a spherical transform between poles, rows that do not begin at one.
std::vector<std::string> doubtful_grid(const config::ModelConfig& config, const std::string& around_globe,
                                       const data::SampleSpec& spec);

}  // namespace welkin::train
