// SPDX-License-Identifier: Apache-2.0
// Shared by line and bar plots: the SVG page, axes, and the frame with titles and legend. Internal to the plots.
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "observe/image/ticks.h"
#include "observe/plot/plot.h"

namespace welkin::observe {

struct PlotPoint {
  double x = 0, y = 0;  // pixels from the upper left corner
};

struct PlotBox {
  double left = 0, top = 0, width = 0, height = 0;
  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

// "#0072b2" and so on, repeating image/'s palette.
std::string plot_color(size_t index);

inline constexpr std::string_view kPlotInk = "#262626";

enum class Anchor { Start, Middle, End };
struct TextStyle {
  Anchor anchor = Anchor::Start;
  double size = 13;
  double turn = 0;  // degrees, clockwise around the text's point
  bool bold = false;
  std::string_view color = kPlotInk;
};

// Approximate width of a text in pixels: there is no font here.
double text_width(std::string_view text, double size);

// The page's elements in drawing order.
class SvgPage {
 public:
  SvgPage(int width, int height);
  void line(PlotPoint from, PlotPoint to, std::string_view color, double width = 1);
  void rectangle(const PlotBox& box, std::string_view fill, std::string_view stroke = "none");
  void polyline(const std::vector<PlotPoint>& points, std::string_view color, bool dashed);
  void dot(PlotPoint at, std::string_view color);
  void text(PlotPoint at, std::string_view words, const TextStyle& style = {});
  void inner(std::string_view page) { out_ << page; }  // another page as an element of this one
  std::string finish();

 private:
  std::ostringstream out_;
};

// An axis with fixed ends and ticks.
struct AxisRange {
  double low = 0, high = 1;
  PlotScale scale = PlotScale::Linear;
  std::vector<image::Tick> ticks{};

  bool holds(double value) const;    // finite, and positive on a logarithmic axis
  double share(double value) const;  // 0 at low, 1 at high
};

// `low` and `high`: range of the values (low > high: none); `air`: fraction of the width left free at either end.
AxisRange axis_range(const PlotAxis& axis, double low, double high, double air, int most_ticks);

struct LegendEntry {
  std::string label;
  std::string color;
  bool dashed = false;
};

struct FrameText {
  std::string title, x_title, y_title;
  std::vector<LegendEntry> legend;
  double label_room = 20;  // below the frame, for the labels of the x axis
};

// The area for data: the page without titles, labels and legend.
PlotBox frame_box(int width, int height, const FrameText& text, const AxisRange& y);
// Draws grid and labels of the y axis, titles and legend.
void draw_frame(SvgPage& page, const PlotBox& box, const FrameText& text, const AxisRange& y, int page_width);

}  // namespace welkin::observe
