// SPDX-License-Identifier: Apache-2.0
// Line and bar plots with axes, ticks and a legend: loss curves, schedules, scores.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "observe/image/raster.h"

namespace welkin::observe::image {

enum class AxisScale { Linear, Log };

struct PlotStyle {
  int width = 900;
  int height = 500;
  std::string title{};
  std::string x_label{};
  std::string y_label{};
  AxisScale y_scale = AxisScale::Linear;  // Log leaves out values that are not positive
  std::optional<double> y_low{};          // empty: from the values
  std::optional<double> y_high{};
};

struct Series {
  std::string label{};  // in the legend; empty: not listed
  std::vector<double> x{};
  std::vector<double> y{};       // as many as x; not finite: a gap
  std::optional<Color> color{};  // empty: the next of a palette that colour-blind readers can tell apart
  bool markers = false;          // a dot at each point
};

struct Bar {
  std::string label{};
  double value = 0;  // not finite: no bar, "no value" in its place
};

Raster draw_lines(const PlotStyle& style, const std::vector<Series>& series);

// Bars from zero up or down, each with its value; linear scale only.
Raster draw_bars(const PlotStyle& style, const std::vector<Bar>& bars);

}  // namespace welkin::observe::image
