// SPDX-License-Identifier: Apache-2.0
// The table, as text and as JSON.
#include "observe/report/run_report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/text.h"
#include "observe/log/table.h"
#include "observe/report/run_table.h"

namespace welkin::observe {
namespace {

template <typename T>
nlohmann::ordered_json json_of(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

nlohmann::ordered_json json_of(const std::optional<ScalarPoint>& point) {
  if (!point) return {};
  return {{"value", point->value}, {"step", point->step}};
}

// The run with the least of `quantity`.
std::optional<size_t> least(const std::vector<RunFigures>& runs, std::optional<double> RunFigures::*quantity) {
  std::optional<size_t> found;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].*quantity && (!found || *(runs[i].*quantity) < *(runs[*found].*quantity))) found = i;
  }
  return found;
}

std::string shown(std::optional<double> value, const char* format) {
  if (!value) return "-";
  char text[64];
  std::snprintf(text, sizeof(text), format, *value);
  return text;
}

std::string shown(std::optional<int64_t> value) { return value ? cat(*value) : "-"; }

}  // namespace

RunComparison compare_runs(const std::vector<RunHistory>& runs, const ReportOptions& options) {
  RunComparison comparison{
      .score = options.score, .target = options.target ? options.target : common_target(runs, options.score), .runs = {}};
  for (const RunHistory& run : runs) comparison.runs.push_back(run_figures(run, options.score, comparison.target));
  comparison.fastest = least(comparison.runs, &RunFigures::seconds_to_target);
  comparison.cheapest = least(comparison.runs, &RunFigures::device_hours);
  return comparison;
}

std::vector<std::string> run_columns() {
  return {"run", "devices", "batch", "steps", "samples/s", "best score", "at step", "s to target", "at step", "GPU-hours", ""};
}

std::vector<std::vector<std::string>> run_rows(const RunComparison& comparison) {
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    const RunFigures& run = comparison.runs[i];
    std::vector<std::string> marks;
    if (comparison.fastest == i) marks.emplace_back("fastest");
    if (comparison.cheapest == i) marks.emplace_back("cheapest");
    rows.push_back({run.label, shown(run.devices), shown(run.global_batch), cat(run.steps), shown(run.samples_per_second, "%.1f"),
                    run.best ? shown(run.best->value, "%.5g") : "-", run.best ? cat(run.best->step) : "-",
                    shown(run.seconds_to_target, "%.1f"), run.reached ? cat(run.reached->step) : "-",
                    shown(run.device_hours, "%.4g"), join(marks, ", ")});
  }
  return rows;
}

std::string target_line(const RunComparison& comparison) {
  const auto has_score = [](const RunFigures& run) { return run.best.has_value(); };
  if (std::ranges::none_of(comparison.runs, has_score))
    return cat("No run has the score ", comparison.score, " as a finite number (--score names another tag)");
  if (!comparison.target)
    return cat("Score ", comparison.score, ", less is better; no target, since no run got better than it began");
  return cat("Score ", comparison.score, ", less is better; target ", shown(comparison.target, "%.5g"));
}

std::string comparison_text(const RunComparison& comparison) {
  std::vector<Column> columns;
  for (const std::string& title : run_columns())
    columns.push_back({title, columns.empty() || title.empty() ? Align::Left : Align::Right});
  Table table(columns);
  for (auto& row : run_rows(comparison)) table.add_row(std::move(row));
  return cat(table.text(), target_line(comparison), "\n");
}

std::string comparison_json(const RunComparison& comparison) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const RunFigures& run : comparison.runs) {
    rows.push_back({{"run", run.label},
                    {"devices", json_of(run.devices)},
                    {"global_batch", json_of(run.global_batch)},
                    {"steps", run.steps},
                    {"seconds", run.seconds},
                    {"samples_per_second", json_of(run.samples_per_second)},
                    {"best", json_of(run.best)},
                    {"reached", json_of(run.reached)},
                    {"seconds_to_target", json_of(run.seconds_to_target)},
                    {"device_hours", json_of(run.device_hours)}});
  }
  const auto name = [&](std::optional<size_t> index) {
    return index ? nlohmann::ordered_json(comparison.runs[*index].label) : nlohmann::ordered_json();
  };
  const nlohmann::ordered_json json = {{"score", comparison.score},
                                       {"target", json_of(comparison.target)},
                                       {"fastest", name(comparison.fastest)},
                                       {"cheapest", name(comparison.cheapest)},
                                       {"runs", rows}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace welkin::observe
