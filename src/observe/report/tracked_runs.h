// SPDX-License-Identifier: Apache-2.0
// Writes runs to the files of experiment trackers, for later use in dashboards.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "observe/report/run_history.h"

namespace welkin::observe {

inline constexpr const char* kTrackedProject = "welkin";  // the experiment of MLflow, the project of Weights & Biases
inline constexpr std::array<std::string_view, 2> kTrackers{"mlflow", "wandb"};

// Writes below `root`: mlruns (mlflow_store.h) or wandb (wandb_run.h). `tracker` is one of kTrackers. DataError when the file
// system refuses.
void track_runs(std::string_view tracker, const std::filesystem::path& root, const std::vector<RunHistory>& runs);

// Writes the run of this folder for each of `trackers` below `root`. The run's name is its path relative to `root`. Returns one
// line per tracker, with its success or failure; never throws.
std::vector<std::string> track_run(const std::vector<std::string>& trackers, const std::filesystem::path& run_folder,
                                   const std::filesystem::path& root);

}  // namespace welkin::observe
