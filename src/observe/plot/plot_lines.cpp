// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <string_view>

#include "core/error.h"
#include "core/text.h"
#include "observe/plot/plot_frame.h"

namespace welkin::observe {
namespace {

struct CurveExtent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void include(double value) { low = std::min(low, value), high = std::max(high, value); }
};

void check_curve(const Curve& curve) {
  const auto fits = [&](const std::vector<double>& ends) { return ends.empty() || ends.size() == curve.y.size(); };
  WELKIN_CHECK(curve.x.size() == curve.y.size() && fits(curve.low) && fits(curve.high),
               cat("curve ", curve.label, ": ", curve.x.size(), " x for ", curve.y.size(), " y"));
}

class LineDrawing {
 public:
  explicit LineDrawing(const LinePlot& plot) : plot_(plot), page_(plot.width, plot.height) {}

  std::string draw() {
    find_ranges();
    text_ = {plot_.title, plot_.x.title, plot_.y.title, legend(), 20};
    box_ = frame_box(plot_.width, plot_.height, text_, y_);
    for (const image::Tick& tick : x_.ticks) {
      const double at = box_.left + x_.share(tick.value) * box_.width;
      page_.line({at, box_.top}, {at, box_.bottom()}, "#e1e1e1");
      page_.text({at, box_.bottom() + 16}, tick.label, {.anchor = Anchor::Middle, .size = 12});
    }
    draw_frame(page_, box_, text_, y_, plot_.width);
    for (size_t i = 0; i < plot_.curves.size(); ++i) draw_curve(plot_.curves[i], plot_color(i));
    page_.rectangle(box_, "none", "#262626");
    return page_.finish();
  }

 private:
  void find_ranges() {
    CurveExtent x, y;
    AxisRange across, up;
    across.scale = plot_.x.scale, up.scale = plot_.y.scale;
    for (const Curve& curve : plot_.curves) {
      check_curve(curve);
      for (size_t i = 0; i < curve.x.size(); ++i) {
        if (!across.holds(curve.x[i]) || !up.holds(curve.y[i])) continue;
        x.include(curve.x[i]);
        y.include(curve.y[i]);
        if (!curve.low.empty() && up.holds(curve.low[i])) y.include(curve.low[i]);
        if (!curve.high.empty() && up.holds(curve.high[i])) y.include(curve.high[i]);
      }
    }
    x_ = axis_range(plot_.x, x.low, x.high, 0.03, std::max(plot_.width / 90, 3));
    y_ = axis_range(plot_.y, y.low, y.high, 0.05, std::max(plot_.height / 50, 3));
  }

  std::vector<LegendEntry> legend() const {
    std::vector<LegendEntry> entries;
    for (size_t i = 0; i < plot_.curves.size(); ++i) {
      const Curve& curve = plot_.curves[i];
      if (!curve.label.empty()) entries.push_back({curve.label, plot_color(i), curve.dashed});
    }
    return entries;
  }

  // Values outside of given axes stay at the frame's edge.
  PlotPoint place(double x, double y) const {
    return {box_.left + std::clamp(x_.share(x), 0.0, 1.0) * box_.width,
            box_.bottom() - std::clamp(y_.share(y), 0.0, 1.0) * box_.height};
  }

  void draw_curve(const Curve& curve, const std::string& color) {
    std::vector<PlotPoint> run;
    for (size_t i = 0; i < curve.x.size(); ++i) {
      if (!x_.holds(curve.x[i]) || !y_.holds(curve.y[i])) {
        page_.polyline(run, color, curve.dashed);
        run.clear();
        continue;
      }
      const PlotPoint at = place(curve.x[i], curve.y[i]);
      run.push_back(at);
      if (curve.markers) page_.dot(at, color);
      const bool has_spread = !curve.low.empty() && !curve.high.empty() && y_.holds(curve.low[i]) && y_.holds(curve.high[i]);
      if (has_spread) page_.line(place(curve.x[i], curve.low[i]), place(curve.x[i], curve.high[i]), color, 1.5);
    }
    page_.polyline(run, color, curve.dashed);
  }

  const LinePlot& plot_;
  SvgPage page_;
  FrameText text_;
  AxisRange x_, y_;
  PlotBox box_;
};

}  // namespace

std::string svg(const LinePlot& plot) { return LineDrawing(plot).draw(); }

std::string svg_row(const std::vector<LinePlot>& plots) {
  constexpr std::string_view kRoot = "<svg ";  // the beginning of each document
  int width = 0, height = 0;
  std::string drawings;
  for (const LinePlot& plot : plots) {
    drawings += cat(kRoot, "x=\"", width, "\" ", svg(plot).substr(kRoot.size()));
    width += plot.width;
    height = std::max(height, plot.height);
  }
  return cat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width, "\" height=\"", height, "\" viewBox=\"0 0 ", width, ' ',
             height, "\">\n", drawings, "</svg>\n");
}

}  // namespace welkin::observe
