// SPDX-License-Identifier: Apache-2.0
// --ds_config: DeepSpeed's JSON beside files and flags. Its values rank above those of the file and the preset. A flag that
// contradicts it is a problem, which names both.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/draft/draft.h"
#include "config/flags/command_line.h"

namespace welkin::config {

// The settings of the JSON at `path`; later ones replace earlier ones. `draft` has the file's values; it gets notes and
// problems. `flags` are the command line's, which are applied after these. Throws ConfigError for a file that cannot be read.
std::vector<Setting> read_ds_settings(Draft& draft, const std::string& path, const std::vector<Setting>& flags,
                                      int64_t world_size);

}  // namespace welkin::config
