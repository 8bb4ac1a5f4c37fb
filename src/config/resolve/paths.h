// SPDX-License-Identifier: Apache-2.0
// The paths of a run: the files that it needs, those of them that are missing, and the folder that it writes to. Looks at names
// only, never into files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema/run_config.h"

namespace welkin::config {

// True if there is such a file or folder; false where the system does not tell.
bool path_exists(const std::string& path);

// A root as rebinding compares it: "/data/" is "/data".
std::string without_trailing_slash(std::string root);

struct MissingPath {
  std::string key;   // flat name of the key: train_path
  std::string path;  // its value; empty when the key is needed and not given
};

// The paths that training with this model and data_loader_config reads and that do not exist, in the order of the schema.
std::vector<MissingPath> missing_paths(const RunConfig& config);

// One text for all of them with the remedy (--data_root); empty when none is missing.
std::string describe_missing(const RunConfig& config);

// Throws DataError with that text unless all are there. Called when a run starts, and by --dry_run --check_data.
void check_paths(const RunConfig& config);

// <expdir>/<config>/<W>GPU/<run_num> or <expdir>/<config>/<M>MP/<run_num> with M = the ranks that hold one model, by
// output.folder_rule.
std::string run_folder(const RunConfig& config, int64_t world_size);

// Makes relative paths absolute: roots, paths below them, and all other paths of data and logs. For a file that is read later,
// from another folder.
RunConfig with_absolute_paths(RunConfig config);

}  // namespace welkin::config
