// SPDX-License-Identifier: Apache-2.0
// Reads DeepSpeed's JSON: settings of our keys, each with its place, and values that depend on the rest of the configuration. A
// key that is absent, null or "auto" leaves the value of our own key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/schema/choices.h"
#include "config/schema/problems.h"

namespace welkin::config {

struct DsSetting {
  std::string path;   // of our key
  std::string text;   // as --set takes it
  std::string place;  // "ds.json:12 zero_optimization.stage"
};

struct DsWhole {
  std::optional<int64_t> value = {};
  bool is_auto = false;
  std::string place = {};
};

struct DsConfig {
  std::string name;                      // of the file
  std::vector<DsSetting> settings = {};  // the last one of a path counts
  DsWhole train_batch = {}, micro_batch = {}, accumulation = {};
  DsWhole total_steps = {};                                     // of the scheduler
  std::vector<std::pair<AmpMode, std::string>> modes_off = {};  // `enabled: false`, with places
  std::vector<std::string> without_effect = {};                 // names
  std::vector<std::string> own = {};                            // names whose value is "auto"
};

// Throws ConfigError where the text is no JSON mapping, or beyond the limits of YamlLimits; faults of its keys go to
// `problems`. `name` stands for the file in messages.
DsConfig read_ds_config(std::string_view text, const std::string& name, Problems& problems);

}  // namespace welkin::config
