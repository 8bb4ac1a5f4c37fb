// SPDX-License-Identifier: Apache-2.0
// A run that is small enough to estimate by hand.
#pragma once

#include <string>

#include "plan/run_estimate.h"

namespace welkin::plan {

// 12 layers of 8 tokens, 4 wide; what splits and what does not differs in every number.
inline RunFacts small_facts() {
  return {.cost = {.forward_flops = 1e9, .train_flops = 3e9, .parameters = 1000},
          .memory = model::MemoryCost{.kept = {.ends = 10, .stream = 100, .shared = 200, .inner = 400, .keys = 80},
                                      .split_parameters = 800},
          .sample_values = 50};
}

inline config::RunConfig small_config() {
  config::RunConfig config;
  config.loop.global_batch_size = 8;
  config.loop.local_batch_size = 4;
  config.loop.num_iters = 100;
  config.data.prefetch_depth = 2;
  return config;
}

// The same of fields in time, whose input, and the target of each further step, are smaller than the sample.
inline RunFacts field_facts() {
  RunFacts facts = small_facts();
  facts.input_values = 30, facts.step_values = 25;
  return facts;
}

inline config::RunConfig field_config() {
  config::RunConfig config = small_config();
  config.model.model = "vit", config.data.dataset = "era5";
  return config;
}

inline double part(const RunEstimate& estimate, const std::string& name) {
  for (const MemoryPart& item : estimate.memory) {
    if (item.name == name) return item.bytes;
  }
  return 0;
}

}  // namespace welkin::plan
