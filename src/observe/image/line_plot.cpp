// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/text.h"
#include "observe/image/legend.h"
#include "observe/image/plot.h"
#include "observe/image/plot_area.h"

namespace welkin::observe::image {
namespace {

constexpr double kLineWidth = 1.8;
constexpr double kMarkerWidth = 6;

// Larger values would overflow the width of an axis; no useful curve has them.
constexpr double kLargest = 1e100;

bool drawable(double x, double y, AxisScale y_scale) {
  if (!(std::abs(x) <= kLargest && std::abs(y) <= kLargest)) return false;
  return y_scale == AxisScale::Linear || y >= 1 / kLargest;
}

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void include(double value) { low = std::min(low, value), high = std::max(high, value); }
  bool empty() const { return low > high; }
};

// Leaves some space around the curves; a single value gets an axis around it.
Axis y_axis(const PlotStyle& style, Extent y) {
  const bool log = style.y_scale == AxisScale::Log;
  if (y.empty()) y = log ? Extent{0.1, 1} : Extent{0, 1};
  if (y.low == y.high) {
    const double around = y.low == 0 ? 1 : std::abs(y.low) * 0.1;
    y = {y.low - around, y.high + around};
  }
  const double factor = std::pow(y.high / y.low, 0.04), air = 0.04 * (y.high - y.low);
  Axis axis{log ? y.low / factor : y.low - air, log ? y.high * factor : y.high + air, style.y_scale};
  axis.low = style.y_low.value_or(axis.low);
  axis.high = style.y_high.value_or(axis.high);
  WELKIN_CHECK(axis.low < axis.high && (!log || axis.low > 0),
               cat("plot ", style.title, ": y from ", axis.low, " to ", axis.high));
  return axis;
}

Axis x_axis(Extent x) {
  if (x.empty()) return {};
  return x.low == x.high ? Axis{x.low - 0.5, x.high + 0.5} : Axis{x.low, x.high};
}

// Runs of drawable points. Long series become two points per pixel column (the lowest and highest), which look the same.
std::vector<Polyline> runs_of(const Series& series, const PlotArea& area, AxisScale y_scale) {
  std::vector<Polyline> runs(1);
  for (size_t i = 0; i < series.x.size(); ++i) {
    if (!drawable(series.x[i], series.y[i], y_scale)) {
      if (!runs.back().empty()) runs.emplace_back();
      continue;
    }
    const Point p = area.pixel(series.x[i], series.y[i]);
    Polyline& run = runs.back();
    const size_t n = run.size();
    const auto in_column = [&](const Point& q) { return std::floor(q.x) == std::floor(p.x); };
    if (n < 3 || !in_column(run[n - 1]) || !in_column(run[n - 2])) {
      run.push_back(p);
      continue;
    }
    Point& upper = run[n - 1].y < run[n - 2].y ? run[n - 1] : run[n - 2];
    Point& lower = &upper == &run[n - 1] ? run[n - 2] : run[n - 1];
    if (p.y < upper.y) upper = p;
    if (p.y > lower.y) lower = p;
  }
  return runs;
}

void draw_series(Raster& raster, const PlotArea& area, const Series& series, Color color, AxisScale y_scale) {
  const Rect& inside = area.inside();
  std::vector<Polyline> lines = runs_of(series, area, y_scale);
  std::vector<Polyline> dots;
  for (Polyline& line : lines) {
    for (Point& p : line) {
      p.y = std::clamp(p.y, inside.y - 4.0 * inside.height, inside.bottom() + 4.0 * inside.height);
      if (series.markers) dots.push_back({p});
    }
  }
  raster.stroke(lines, kLineWidth, color);
  raster.stroke(dots, kMarkerWidth, color);
}

// Restores the pixels outside of the frame that a curve has overwritten.
void keep_inside(Raster& raster, const Rect& inside, const Raster& before) {
  for (int y = 0; y < raster.height(); ++y) {
    for (int x = 0; x < raster.width(); ++x) {
      const bool in = x >= inside.x && x < inside.right() && y >= inside.y && y < inside.bottom();
      if (!in) raster.set(x, y, before.at(x, y));
    }
  }
}

}  // namespace

Raster draw_lines(const PlotStyle& style, const std::vector<Series>& series) {
  Extent x, y;
  for (const Series& one : series) {
    WELKIN_CHECK(one.x.size() == one.y.size(), cat("series ", one.label, ": ", one.x.size(), " x for ", one.y.size(), " y"));
    for (size_t i = 0; i < one.x.size(); ++i) {
      if (drawable(one.x[i], one.y[i], style.y_scale)) x.include(one.x[i]), y.include(one.y[i]);
    }
  }
  const Axis across = x_axis(x), up = y_axis(style, y);
  const int most = std::max(style.height / 60, 3);
  const auto y_ticks = up.scale == AxisScale::Log ? log_ticks(up.low, up.high, most) : linear_ticks(up.low, up.high, most);
  const PlotArea area(style, across, up, linear_ticks(across.low, across.high, std::max(style.width / 110, 3)), y_ticks);
  Raster raster(style.width, style.height);
  area.draw_grid(raster);
  const Raster before = raster;
  std::vector<LegendRow> legend;
  for (size_t i = 0; i < series.size(); ++i) {
    const Color color = series[i].color.value_or(kPalette[i % kPalette.size()]);
    draw_series(raster, area, series[i], color, style.y_scale);
    if (!series[i].label.empty()) legend.push_back({series[i].label, color});
  }
  keep_inside(raster, area.inside(), before);
  area.draw_axes(raster);
  draw_legend(raster, area.inside(), legend);
  return raster;
}

}  // namespace welkin::observe::image
