// SPDX-License-Identifier: Apache-2.0
// Writes runs as folders of Weights & Biases' offline mode, which `wandb sync FOLDER/offline-run-*` uploads: one file of
// records each, protocol buffers in a LevelDB log (wandb/proto/wandb_internal.proto, wandb/sdk/internal/datastore.py of wandb
// 0.19). It needs no server and no package.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "observe/report/run_history.h"

namespace welkin::observe {

// Writes below `folder`, created if absent. An existing run is replaced: its path follows from its own folder and first
// event. A running run has no end yet. Throws DataError when the file system refuses.
void write_wandb_runs(const std::filesystem::path& folder, const std::string& project, const std::vector<RunHistory>& runs);

}  // namespace welkin::observe
