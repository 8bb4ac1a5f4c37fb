// SPDX-License-Identifier: Apache-2.0
// Runs side by side: a table of what each comes to, and one HTML page with their curves, which needs nothing from the network.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "observe/report/run_history.h"

namespace welkin::observe {

struct ReportOptions {
  std::string score = "Loss/valid";  // less is better
  std::optional<double> target{};    // of the score; empty: the best that all runs reach (common_target)
};

// Figures of all runs, with the target that holds.
struct RunComparison {
  std::string score;
  std::optional<double> target;
  std::vector<RunFigures> runs;
  std::optional<size_t> fastest{}, cheapest{};  // to the target: by time, by device-hours
};

RunComparison compare_runs(const std::vector<RunHistory>& runs, const ReportOptions& options);

std::string comparison_text(const RunComparison& comparison);
std::string comparison_json(const RunComparison& comparison);
// Every score by step, by relative wall time and by samples; every other tag by step.
std::string comparison_html(const RunComparison& comparison, const std::vector<RunHistory>& runs);

}  // namespace welkin::observe
