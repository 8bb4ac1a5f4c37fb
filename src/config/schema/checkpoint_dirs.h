// SPDX-License-Identifier: Apache-2.0
// The key checkpoint_dirs: entries NAME:PATH[:INTERVAL[:KEEP]][:neighbour].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace welkin::config {

struct CheckpointDir {
  std::string name;
  std::string path;                 // absolute; {node} in it stands for the number of the node
  std::optional<int64_t> interval;  // steps, at least 1; nothing: checkpoint_interval
  std::optional<int64_t> keep;      // at least 1; nothing: keep_checkpoints
  bool neighbour = false;           // on each node's own disk, with a copy on that of the next node
};

// Parses the entries. Where one is not of this form, or two have the same name or path, `problem` gets the error.
std::vector<CheckpointDir> parse_checkpoint_dirs(const std::vector<std::string>& entries, std::string& problem);

}  // namespace welkin::config
