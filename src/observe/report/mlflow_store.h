// SPDX-License-Identifier: Apache-2.0
// Writes runs as MLflow's file store (`mlflow server --backend-store-uri FOLDER`): meta.yaml of experiment and run, a file per
// metric with lines "milliseconds value step", a file per parameter and tag (mlflow/store/tracking/file_store.py, MLflow 2 and
// 3). It needs no server and no package.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "observe/report/run_history.h"

namespace welkin::observe {

// Writes below `folder`, created if absent, as one experiment. An existing run is replaced: its path follows from its own
// folder. Throws DataError when the file system refuses.
void write_mlflow_store(const std::filesystem::path& folder, const std::string& experiment, const std::vector<RunHistory>& runs);

// Turns a tag into a valid MLflow name: letters, digits and "_-. :/"; others become "_".
std::string mlflow_name(std::string_view tag);

}  // namespace welkin::observe
