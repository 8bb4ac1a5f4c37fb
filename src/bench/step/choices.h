// SPDX-License-Identifier: Apache-2.0
// Trials of `welkin bench --ladder` and `--explore`: the tutorials' switches in their order, and the other values that each
// switch could have. Keys and values only; trials.h measures them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "config/resolve/switches.h"
#include "config/schema/run_config.h"

namespace welkin::bench {

using KeyValues = std::vector<std::pair<std::string, std::string>>;

// A rung turns on the tutorials' next switch; earlier ones stay on.
struct Rung {
  std::string name;
  KeyValues settings;
  std::string note{};       // meaning of the switch on this device, from the table of switches
  bool is_measured = true;  // false: no effect on this device, as the note says
};
std::vector<Rung> ladder_rungs(const config::RunConfig& config, config::DeviceKind device);

// Values that "auto" and 0 in a configuration resolve to on this machine.
struct PresentValues {
  int64_t local_batch = 1;  // samples of a step on this rank
  int64_t cores = 1, threads = 1;
  bool has_convolutions = false;  // from the model's row in the registry
  std::string gemm, instruction_set;
  std::vector<std::string> instruction_sets;  // of this processor
};
PresentValues present_values(const config::RunConfig& config, int64_t world_size, bool has_convolutions);

struct Choice {
  std::string key;
  std::vector<std::string> values;  // without the current one
};
// `reads`: the data pipeline feeds the steps, so its switches are included.
std::vector<Choice> switch_choices(const config::RunConfig& config, config::DeviceKind device, const PresentValues& present,
                                   bool reads);

}  // namespace welkin::bench
