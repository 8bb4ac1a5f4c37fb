// SPDX-License-Identifier: Apache-2.0
// Line, bar and lane plots as SVG, for pages and reports: sharp at any size, with searchable text. image/ has pictures of
// fields and plots for event files. Pure functions: they write no file.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace welkin::observe {

enum class PlotScale { Linear, Log };  // Log leaves out values that are not positive

struct PlotAxis {
  std::string title{};
  PlotScale scale = PlotScale::Linear;
  std::optional<double> low{}, high{};  // empty: from the values
  std::vector<double> ticks{};          // empty: round numbers; else exactly these, for instance 1 2 4 8 ranks
};

struct Curve {
  std::string label{};                // in the legend; empty: not listed
  std::vector<double> x{}, y{};       // of equal length; not finite: a gap
  std::vector<double> low{}, high{};  // error bar through each point; empty: none
  bool dashed = false;                // for limits and ideals
  bool markers = true;                // a dot at each point
};

struct LinePlot {
  std::string title{};
  PlotAxis x{}, y{};
  std::vector<Curve> curves{};
  int width = 800, height = 480;
};

struct BarGroup {
  std::string label{};           // under the group
  std::vector<double> values{};  // one per series; not finite: no bar
};

struct BarPlot {
  std::string title{};
  PlotAxis y{};                       // linear: bars begin at 0
  std::vector<std::string> series{};  // names; at least one, and no legend for a single one
  std::vector<BarGroup> groups{};
  bool stacked = false;  // series of a group on top of each other, for shares; else side by side, each with its number
  int width = 800, height = 480;
};

// An interval of time, in the units of its plot.
struct LaneBox {
  double begin = 0, end = 0;
  std::string text{};  // text inside, if there is room
  size_t kind = 0;     // index into LanePlot::kinds, which determines the colour
};

struct Lane {
  std::string label{};  // text before the lane
  std::vector<LaneBox> boxes{};
};

// Activity of several workers over time, which begins at 0: one lane below the other, as high as they need.
struct LanePlot {
  std::string title{};
  std::vector<std::string> kinds{};  // names of the colours; used ones are in the legend
  std::vector<Lane> lanes{};
  int width = 1000;
};

// A table of coloured cells, each with its number: blue above 0, red below.
struct CellPlot {
  std::string title{};
  std::vector<std::string> columns{};
  std::vector<BarGroup> rows{};  // a value for each column; not finite: an empty cell
  double largest = 50;           // of either sign: the deepest colour
};

// A whole SVG document. InternalError if a curve has unequal numbers of x and y, a group does not have one value per
// series or column, or a box has a kind without a name.
std::string svg(const LinePlot& plot);
std::string svg(const BarPlot& plot);
std::string svg(const LanePlot& plot);
std::string svg(const CellPlot& plot);
// Several plots in one document, from left to right.
std::string svg_row(const std::vector<LinePlot>& plots);

// Pages of one width as one document, below one another, under a title.
std::string stacked(const std::string& title, const std::vector<std::string>& pages);

}  // namespace welkin::observe
