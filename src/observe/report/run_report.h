// SPDX-License-Identifier: Apache-2.0
// Comparison of runs: a table of their figures, and one HTML page with their curves, which needs no network.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "observe/report/run_history.h"
#include "observe/report/score_file.h"

namespace welkin::observe {

struct ReportOptions {
  std::string score = "Loss/valid";  // less is better
  std::optional<double> target{};    // of the score; empty: the best score that all runs reach (common_target)
};

// Figures of all runs, and the target used.
struct RunComparison {
  std::string score;
  std::optional<double> target;
  std::vector<RunFigures> runs;
  std::optional<size_t> fastest{}, cheapest{};  // to the target: by time, by device-hours
};

RunComparison compare_runs(const std::vector<RunHistory>& runs, const ReportOptions& options);

std::string comparison_text(const RunComparison& comparison);
std::string comparison_json(const RunComparison& comparison);

struct PageOptions {
  std::string title = "Runs";
  std::string made{};                 // time of the report, for readers
  bool live = false;                  // the runs go on, and the page updates itself
  std::string live_file{};            // name of the file beside the page with the output of live_script(); empty: none
  std::vector<ScoreSeries> scores{};  // of forecasts
};

// Curves by step, relative wall time or samples, with zoom; table, configuration differences, timeline, scores, pictures, events.
std::string comparison_html(const RunComparison& comparison, const std::vector<RunHistory>& runs,
                            const PageOptions& options = {});
// The script from which an open page reads new data: a page from a file may load scripts, but no data.
std::string live_script(const RunComparison& comparison, const std::vector<RunHistory>& runs, const PageOptions& options);

}  // namespace welkin::observe
