// SPDX-License-Identifier: Apache-2.0
// The resolved configuration as text: a table with the origin of each value, YAML that loads again to the same configuration, and
// the tutorials' dump.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/resolve/resolve.h"

namespace welkin::config {

// The text of `--dry_run`: what was inferred, one row per key that has an effect (component, key, value,
// unit, origin), the notes.
std::string table(const Resolved& resolved, int64_t world_size);

// The text of `--dry_run=yaml`, which runs and checkpoints save: one preset named config.config, nested by component.
std::string yaml(const RunConfig& config);

// The tutorials' configuration dump of out.log between its dashes: `<key> <value>` in the file's order of iteration, then the
// keys that the tutorials add when a run starts; values as Python prints them.
std::vector<std::string> dump_lines(const Resolved& resolved);

// The schema as a table of Markdown, as it stands in docs/reference/keys.md.
std::string keys_markdown();

}  // namespace welkin::config
