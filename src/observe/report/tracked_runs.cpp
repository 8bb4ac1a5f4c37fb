// SPDX-License-Identifier: Apache-2.0
#include "observe/report/tracked_runs.h"

#include "core/error.h"
#include "core/text.h"
#include "observe/report/mlflow_store.h"
#include "observe/report/wandb_run.h"

namespace welkin::observe {

void track_runs(std::string_view tracker, const std::filesystem::path& root, const std::vector<RunHistory>& runs) {
  if (tracker == "mlflow") return write_mlflow_store(root / "mlruns", kTrackedProject, runs);
  WELKIN_CHECK(tracker == "wandb", "an unknown tracker");
  write_wandb_runs(root / "wandb", kTrackedProject, runs);
}

std::vector<std::string> track_run(const std::vector<std::string>& trackers, const std::filesystem::path& run_folder,
                                   const std::filesystem::path& root) {
  std::vector<std::string> lines;
  for (const std::string& tracker : trackers) {
    try {
      std::vector<RunHistory> runs = read_runs(run_folder.string());
      for (RunHistory& run : runs) run.label = run_folder.lexically_relative(root).string();
      track_runs(tracker, root, runs);
      lines.push_back(cat("Tracked for ", tracker, " below ", root.string()));
    } catch (const Error& error) {
      lines.push_back(cat("Not tracked for ", tracker, ": ", error.what()));
    }
  }
  return lines;
}

}  // namespace welkin::observe
