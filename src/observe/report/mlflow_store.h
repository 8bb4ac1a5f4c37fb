// SPDX-License-Identifier: Apache-2.0
// Runs as MLflow's file store (`mlflow server --backend-store-uri FOLDER`): meta.yaml of experiment and run, a file per metric
// with lines "milliseconds value step", a file per parameter and tag (mlflow/store/tracking/file_store.py, MLflow 2 and 3). No
// server and no package is needed to write it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "observe/report/run_history.h"

namespace welkin::observe {

// Below `folder`, made if absent, as one experiment. A run that is there already is replaced: its place follows from its own
// folder. Throws DataError when the file system refuses.
void write_mlflow_store(const std::filesystem::path& folder, const std::string& experiment, const std::vector<RunHistory>& runs);

// A tag as a name that MLflow takes: letters, digits and "_-. :/"; others become "_".
std::string mlflow_name(std::string_view tag);

}  // namespace welkin::observe
