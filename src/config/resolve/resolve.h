// SPDX-License-Identifier: Apache-2.0
// Makes the configuration of a run from a command line and the file that it names: default < file < preset < flag, where a flag
// counts only when given. Everything that is wrong is reported in one ConfigError, before any data or device is touched.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/draft/known_names.h"
#include "config/draft/origin.h"
#include "config/flags/command_line.h"
#include "config/schema/run_config.h"

namespace welkin::config {

struct Resolved {
  RunConfig config;
  std::map<std::string, Origin> origins;  // by dotted name (model.embed_dim); every key of the schema is in it
  std::vector<std::string> notes;         // one line each: keys without effect, inferred values
  std::vector<std::string> file_order;    // the preset's flat keys in the tutorials' order of iteration, for dump_lines()
  std::vector<std::string> presets;       // of the file, in its order
};

// Settings by the environment, with the name of the variable: NVIDIA_TF32_OVERRIDE=0 turns TF32 off in NVIDIA's libraries,
// whatever the program asks for. `variable` is getenv. Ranks above the command line.
std::vector<Setting> environment_settings(const std::function<const char*(const char*)>& variable);

// Reads the file of --yaml_config (or the default of --tutorial), applies the preset and the flags, fills in values that depend
// on others, and validates. `world_size` is the number of ranks of the run, kOneReplica as many as the model is divided over:
// replicas that train nothing divide no batch. Opens nothing but the YAML file. Throws ConfigError.
inline constexpr int64_t kOneReplica = 0;
Resolved resolve(const CommandLine& command_line, int64_t world_size, const KnownNames& known = {});

// A configuration that yaml() printed (saved in run folders and checkpoints). `name` stands for the file in messages. Throws
// ConfigError.
RunConfig from_yaml(std::string_view text, const std::string& name, int64_t world_size);

// Only the values of such a configuration: nothing is derived or checked, whatever the number of processes.
RunConfig saved_values(std::string_view text, const std::string& name);

}  // namespace welkin::config
