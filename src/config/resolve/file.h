// SPDX-License-Identifier: Apache-2.0
// The file with presets: finds and reads it, and tells its presets from top-level settings that hold for all of
// them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/draft/draft.h"
#include "config/flags/command_line.h"
#include "config/yaml/yaml_document.h"

namespace welkin::config {

// --yaml_config, else with --tutorial ./config/<tutorial>/<model>.yaml or ./config/<model>.yaml; null when neither flag is given.
// ConfigError when it does not exist.
std::optional<std::string> configuration_file(const CommandLine& command_line);

// Throws ConfigError when the file cannot be read or is not such a file.
YamlDocument read_configuration(const std::string& path);

// Top-level keys that are not keys of the schema, in the file's order.
std::vector<std::string> preset_names(const YamlDocument& document);

// The file's own settings, then those of the preset. Without a preset, `base` is taken, unless the file has none at all. Throws
// ConfigError for an unknown preset.
void apply_file(Draft& draft, const YamlDocument& document, const std::optional<std::string>& preset);

}  // namespace welkin::config
