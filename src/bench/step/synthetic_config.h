// SPDX-License-Identifier: Apache-2.0
// Makes configurations that are measured without their data.
#pragma once

#include "config/schema/run_config.h"

namespace welkin::bench {

// Keeps the configured shapes, with just enough samples for a step; boxes are no larger than a crop.
inline config::RunConfig synthetic_config(config::RunConfig config) {
  const int64_t samples = config.loop.global_batch_size;
  config.data.data_loader_config = config::Loader::Synthetic;
  config.data.box_size = {config.data.data_size, config.data.data_size};
  config.data.Nsamples = samples;
  config.data.limit_nsamples = samples;
  config.data.resident = config::Residence::None;
  config.data.num_data_workers = 0;
  return config;
}

}  // namespace welkin::bench
