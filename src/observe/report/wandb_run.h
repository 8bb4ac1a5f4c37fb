// SPDX-License-Identifier: Apache-2.0
// Runs as folders of Weights & Biases' offline mode, which `wandb sync FOLDER/offline-run-*` uploads: one file of records each,
// protocol buffers in a LevelDB log (wandb/proto/wandb_internal.proto, wandb/sdk/internal/datastore.py of wandb 0.19). No server
// and no package is needed to write it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "observe/report/run_history.h"

namespace welkin::observe {

// Below `folder`, made if absent. A run that is there already is replaced: its place follows from its own folder and its first
// event. A run that goes on has no end yet. Throws DataError when the file system refuses.
void write_wandb_runs(const std::filesystem::path& folder, const std::string& project, const std::vector<RunHistory>& runs);

}  // namespace welkin::observe
