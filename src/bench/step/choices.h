// SPDX-License-Identifier: Apache-2.0
// What `welkin bench --ladder` and `--explore` try: the tutorials' switches in their order, and the values that each switch could
// have besides the present one. Keys and values; what they bring is measured by trials.h.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "config/resolve/switches.h"
#include "config/schema/run_config.h"

namespace welkin::bench {

using KeyValues = std::vector<std::pair<std::string, std::string>>;

// A rung turns on what the tutorials turn on next; those below stay.
struct Rung {
  std::string name;
  KeyValues settings;
  std::string note{};       // what the switch means on this device, where the table of switches says it
  bool is_measured = true;  // false: it changes nothing here, as the note says
};
std::vector<Rung> ladder_rungs(const config::RunConfig& config, config::DeviceKind device);

// What a configuration with "auto" and 0 comes to on this machine.
struct PresentValues {
  int64_t local_batch = 1;  // samples of a step on this rank
  int64_t cores = 1, threads = 1;
  bool has_convolutions = false;  // as the model's row in the registry says
  std::string gemm, instruction_set;
  std::vector<std::string> instruction_sets;  // those that the processor has
};
PresentValues present_values(const config::RunConfig& config, int64_t world_size, bool has_convolutions);

struct Choice {
  std::string key;
  std::vector<std::string> values;  // without the present one
};
// `reads`: steps are fed by the data pipeline, so that its switches count too.
std::vector<Choice> switch_choices(const config::RunConfig& config, config::DeviceKind device, const PresentValues& present,
                                   bool reads);

}  // namespace welkin::bench
