// SPDX-License-Identifier: Apache-2.0
// The page of runs, written once or while they go on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/cli/application.h"
#include "observe/report/run_report.h"

namespace welkin::apps {

struct ReportRequest {
  std::vector<std::string> runs, scores;
  observe::ReportOptions options;
  std::filesystem::path output = "report.html";
  std::string json;
  std::filesystem::path mlflow, wandb;
  int64_t devices = 0, batch = 0;
  bool is_live = false;
  double interval_s = 5;
};

// Reads the runs, writes the page and the other requested files. `has_ended`: set to true if all runs have ended.
// A page without its data file stays complete; an open page loads new data from the second file.
observe::RunComparison write_page(Application& application, const ReportRequest& request, bool is_stopping, bool& has_ended);
// Writes the page again and again until the runs have ended, or Ctrl-C.
observe::RunComparison follow_runs(Application& application, const ReportRequest& request);

}  // namespace welkin::apps
