// SPDX-License-Identifier: Apache-2.0
// --dry_run of the verbs that take a configuration: checks and prints it, and starts nothing.
#pragma once

#include <cstdint>

#include "apps/cli/application.h"
#include "config/flags/command_line.h"
#include "config/resolve/resolve.h"

namespace welkin::apps {

inline bool is_dry_run(const config::CommandLine& line) { return line.dry_run != config::DryRun::Off; }

// Prints the resolved configuration as a table or YAML; for several ranks also their placement. Absent paths are warnings. With
// --check_data they are errors, and the data are opened: mismatches and samples that would be left out are reported.
void print_configuration(Application& application, const config::CommandLine& line, const config::Resolved& resolved,
                         int64_t world_size, int64_t num_nodes = 1);

}  // namespace welkin::apps
