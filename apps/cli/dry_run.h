// SPDX-License-Identifier: Apache-2.0
// --dry_run of the verbs that take a configuration: it is checked and printed, and nothing is started.
#pragma once

#include <cstdint>

#include "apps/cli/application.h"
#include "config/flags/command_line.h"
#include "config/resolve/resolve.h"

namespace welkin::apps {

inline bool is_dry_run(const config::CommandLine& line) { return line.dry_run != config::DryRun::Off; }

// The resolved configuration as a table or as YAML; of more than one rank with what lands where. Absent paths are warnings. With
// --check_data they are errors, and the data are opened, which says what does not fit and what would be left out.
void print_configuration(Application& application, const config::CommandLine& line, const config::Resolved& resolved,
                         int64_t world_size, int64_t num_nodes = 1);

}  // namespace welkin::apps
