// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "observe/plot/plot_frame.h"

namespace welkin::observe {
namespace {

constexpr double kGroupShare = 0.8;  // fraction of a group's room for its bars
constexpr double kTurn = 30;         // degrees, of labels that are wider than their room
constexpr double kLabelShare = 0.5;  // largest fraction of the page's height for turned labels

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }  // in UTF-8

// Shortens a label to its beginning and end, at most `width` wide.
std::string shortened(const std::string& label, double width) {
  if (text_width(label, 12) <= width) return label;
  for (size_t kept = label.size() / 2; kept > 0; --kept) {
    if (!begins_character(label[kept]) || !begins_character(label[label.size() - kept])) continue;
    std::string shorter = cat(label.substr(0, kept), "...", label.substr(label.size() - kept));
    if (text_width(shorter, 12) <= width) return shorter;
  }
  return "...";
}

class BarDrawing {
 public:
  explicit BarDrawing(const BarPlot& plot) : plot_(plot), page_(plot.width, plot.height) {}

  std::string draw() {
    find_range(plot_.height);
    text_ = {plot_.title, "", plot_.y.title, legend(), 20};
    box_ = frame_box(plot_.width, plot_.height, text_, y_);
    is_turned_ = widest_label() > room() - 4;
    const double rise = std::sin(kTurn * M_PI / 180);
    label_width_ = is_turned_ ? std::min(widest_label(), kLabelShare * plot_.height / rise) : widest_label();
    if (is_turned_) text_.label_room = 16 + label_width_ * rise;
    box_ = frame_box(plot_.width, plot_.height, text_, y_);
    find_range(box_.height);  // turned labels may have reduced the bars' height
    box_ = frame_box(plot_.width, plot_.height, text_, y_);
    draw_frame(page_, box_, text_, y_, plot_.width);
    for (size_t i = 0; i < plot_.groups.size(); ++i) draw_group(plot_.groups[i], box_.left + static_cast<double>(i) * room());
    page_.line({box_.left, level(0)}, {box_.right(), level(0)}, "#262626");
    page_.rectangle(box_, "none", "#262626");
    return page_.finish();
  }

 private:
  double room() const { return box_.width / static_cast<double>(std::max<size_t>(1, plot_.groups.size())); }
  double level(double value) const { return box_.bottom() - std::clamp(y_.share(value), 0.0, 1.0) * box_.height; }

  double widest_label() const {
    double widest = 0;
    for (const BarGroup& group : plot_.groups) widest = std::max(widest, text_width(group.label, 12));
    return widest;
  }

  // `height`: of the box of the bars.
  void find_range(double height) {
    double low = 0, high = 0;
    for (const BarGroup& group : plot_.groups) {
      WELKIN_CHECK(group.values.size() == plot_.series.size(),
                   cat("bars ", group.label, ": ", group.values.size(), " values for ", plot_.series.size(), " series"));
      double up = 0, down = 0;
      for (const double value : group.values) {
        if (!std::isfinite(value)) continue;
        double& end = value < 0 ? down : up;
        end = plot_.stacked ? end + value : (value < 0 ? std::min(end, value) : std::max(end, value));
      }
      low = std::min(low, down), high = std::max(high, up);
    }
    if (low == high) high = 1;
    constexpr double kNumber = 18;  // height of the number on the highest bar
    const double air = std::max(0.08, kNumber / std::max(height - 2 * kNumber, kNumber)) * (high - low);
    PlotAxis axis = plot_.y;
    axis.scale = PlotScale::Linear;
    axis.low = plot_.y.low.value_or(low < 0 ? low - air : 0);
    axis.high = plot_.y.high.value_or(high > 0 ? high + air : 0);
    y_ = axis_range(axis, low, high, 0, std::max(plot_.height / 50, 3));
  }

  std::vector<LegendEntry> legend() const {
    std::vector<LegendEntry> entries;
    for (size_t i = 0; plot_.series.size() > 1 && i < plot_.series.size(); ++i) {
      entries.push_back({plot_.series[i], plot_color(i), false});
    }
    return entries;
  }

  void bar(double left, double width, double from, double to, const std::string& color) {
    const double top = std::min(level(from), level(to));
    page_.rectangle({left, top, width, std::abs(level(from) - level(to))}, color);
  }

  void draw_group(const BarGroup& group, double left) {
    const double first = left + room() * (1 - kGroupShare) / 2, width = room() * kGroupShare;
    plot_.stacked ? draw_stack(group, first, width) : draw_side_by_side(group, first, width);
    const PlotPoint label{left + room() / 2, box_.bottom() + 16};
    const double to_the_edge = is_turned_ ? label.x / std::cos(kTurn * M_PI / 180) : label_width_;
    page_.text(label, shortened(group.label, std::min(label_width_, to_the_edge)),
               {.anchor = is_turned_ ? Anchor::End : Anchor::Middle, .size = 12, .turn = is_turned_ ? -kTurn : 0});
  }

  void draw_stack(const BarGroup& group, double left, double width) {
    double up = 0, down = 0;
    for (size_t i = 0; i < group.values.size(); ++i) {
      const double value = group.values[i];
      if (!std::isfinite(value)) continue;
      double& end = value < 0 ? down : up;
      bar(left, width, end, end + value, plot_color(i));
      end += value;
    }
  }

  void draw_side_by_side(const BarGroup& group, double left, double width) {
    const double each = width / static_cast<double>(std::max<size_t>(1, group.values.size()));
    for (size_t i = 0; i < group.values.size(); ++i) {
      const double value = group.values[i];
      if (!std::isfinite(value)) continue;
      const double at = left + static_cast<double>(i) * each;
      bar(at, each * 0.95, 0, value, plot_color(i));
      const std::string number = image::short_number(value);
      if (text_width(number, 11) > each + 6) continue;
      page_.text({at + each / 2, value < 0 ? level(value) + 12 : level(value) - 4}, number,
                 {.anchor = Anchor::Middle, .size = 11});
    }
  }

  const BarPlot& plot_;
  SvgPage page_;
  FrameText text_;
  AxisRange y_;
  PlotBox box_;
  bool is_turned_ = false;
  double label_width_ = 0;  // largest label width
};

}  // namespace

std::string svg(const BarPlot& plot) { return BarDrawing(plot).draw(); }

}  // namespace welkin::observe
