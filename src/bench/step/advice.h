// SPDX-License-Identifier: Apache-2.0
// Advice on the shapes of a run for the units that multiply: alignment, tiles, precision, threads, shards. Arithmetic on
// configuration and on measurements; torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema/run_config.h"

namespace welkin::bench {

struct AdviceFacts {
  bool is_gpu = false;
  int64_t batch = 1;                      // samples of a forward pass
  int64_t threads = 1, cores = 1;         // in use, and usable by all ranks of this machine
  double fp32_flops = 0, bf16_flops = 0;  // measured; 0: not measured
};

// The fraction of the work on `size` rows or columns that is not padding, in tiles of `tile`.
double tile_efficiency(int64_t size, int64_t tile);

// One line per finding. Correct settings are listed too, so that a reader sees that they were checked.
std::vector<std::string> advice(const config::RunConfig& config, const AdviceFacts& facts);

}  // namespace welkin::bench
