// SPDX-License-Identifier: Apache-2.0
// The HTML page: a table and plots as inline SVG. What comes from files (labels, tags) is escaped.
#include <algorithm>
#include <cmath>
#include <set>

#include "core/text.h"
#include "observe/image/plot_area.h"
#include "observe/plot/markup.h"
#include "observe/plot/plot.h"
#include "observe/report/run_report.h"
#include "observe/report/run_table.h"

namespace welkin::observe {
namespace {

constexpr const char* kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:1320px;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0}td,th{padding:.25em .8em;border-bottom:1px solid #ddd;text-align:right}"
    "td:first-child,th:first-child{text-align:left}th{border-bottom:2px solid #888}"
    ".row{display:flex;flex-wrap:wrap;gap:1em}.row svg{flex:1 1 420px;max-width:640px;height:auto}h2{margin-top:1.5em}";

std::string table_html(const RunComparison& comparison) {
  const auto line = [](const std::vector<std::string>& cells, const char* tag) {
    std::string row = "<tr>";
    for (const std::string& cell : cells) row += cat("<", tag, ">", escaped_markup(cell), "</", tag, ">");
    return cat(row, "</tr>\n");
  };
  std::string html = cat("<table>\n", line(run_columns(), "th"));
  for (const auto& row : run_rows(comparison)) html += line(row, "td");
  return cat(html, "</table>\n");
}

enum class Along { Step, Time, Samples };

struct TimeUnit {
  const char* name;
  double seconds;
};

TimeUnit time_unit(double longest) {
  if (longest > 2 * 3600) return {"hours", 3600};
  if (longest > 120) return {"minutes", 60};
  return {"seconds", 1};
}

double longest_run(const RunComparison& comparison) {
  double longest = 0;
  for (const RunFigures& run : comparison.runs) longest = std::max(longest, run.seconds);
  return longest;
}

// A run that does not say its batch has no place on the axis of samples.
Curve curve_of(const RunHistory& run, const std::vector<ScalarPoint>& points, Along along, TimeUnit unit) {
  constexpr size_t kMostMarkers = 60;
  Curve curve{.label = run.label, .markers = points.size() <= kMostMarkers};
  const double batch = static_cast<double>(run.global_batch.value_or(0));
  for (const ScalarPoint& point : points) {
    const auto step = static_cast<double>(point.step);
    const double x = along == Along::Step      ? step
                     : along == Along::Samples ? step * batch
                                               : (point.wall_time - run.scalars.first_wall_time) / unit.seconds;
    curve.x.push_back(x);
    curve.y.push_back(point.value);
  }
  return curve;
}

// A loss that falls by more than this shows more on a logarithmic axis.
PlotScale scale_of(const std::vector<Curve>& curves) {
  constexpr double kWide = 5;
  double low = HUGE_VAL, high = 0;
  for (const Curve& curve : curves) {
    for (const double y : curve.y) {
      if (!std::isfinite(y)) continue;
      low = std::min(low, y);
      high = std::max(high, y);
    }
  }
  return low > 0 && high / low > kWide ? PlotScale::Log : PlotScale::Linear;
}

bool is_score(const std::string& tag) { return tag.starts_with("Loss/") || tag.starts_with("RMSE"); }

// Empty where no run has a point.
std::string plot_html(const std::vector<RunHistory>& runs, const std::string& tag, Along along, TimeUnit unit) {
  constexpr int kWidth = 640, kHeight = 400;
  LinePlot plot{.title = tag, .width = kWidth, .height = kHeight};
  plot.x.title = along == Along::Step ? "steps" : along == Along::Samples ? "samples" : cat("relative wall time, ", unit.name);
  bool is_empty = true;
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto found = runs[i].scalars.by_tag.find(tag);
    const bool has_points = found != runs[i].scalars.by_tag.end() && !found->second.empty();
    const bool is_shown = has_points && (along != Along::Samples || runs[i].global_batch);
    plot.curves.push_back(is_shown ? curve_of(runs[i], found->second, along, unit) : Curve{});  // its place keeps its colour free
    plot.curves.back().dashed = i / image::kPalette.size() % 2 == 1;                            // colours come again
    is_empty = is_empty && !is_shown;
  }
  if (is_empty) return {};
  if (is_score(tag)) plot.y.scale = scale_of(plot.curves);
  return cat(svg(plot), "\n");
}

}  // namespace

std::string comparison_html(const RunComparison& comparison, const std::vector<RunHistory>& runs) {
  std::set<std::string> tags;
  for (const RunHistory& run : runs) {
    for (const auto& [tag, points] : run.scalars.by_tag) tags.insert(tag);
  }
  const TimeUnit unit = time_unit(longest_run(comparison));
  std::string html = cat("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Runs</title><style>", kStyle,
                         "</style></head><body>\n<h1>Runs</h1>\n", table_html(comparison), "<p>",
                         escaped_markup(target_line(comparison)), ".</p>\n");
  std::string others;
  for (const std::string& tag : tags) {
    if (is_score(tag) || tag == comparison.score) {
      html += cat("<h2>", escaped_markup(tag), "</h2>\n<div class=\"row\">\n");
      for (const Along along : {Along::Step, Along::Time, Along::Samples}) html += plot_html(runs, tag, along, unit);
      html += "</div>\n";
    } else {
      others += plot_html(runs, tag, Along::Step, unit);
    }
  }
  if (!others.empty()) html += cat("<h2>Other curves</h2>\n<div class=\"row\">\n", others, "</div>\n");
  return cat(html, "</body></html>\n");
}

}  // namespace welkin::observe
