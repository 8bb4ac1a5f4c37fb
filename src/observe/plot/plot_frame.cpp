// SPDX-License-Identifier: Apache-2.0
#include "observe/plot/plot_frame.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iomanip>

#include "observe/image/plot_area.h"
#include "observe/plot/markup.h"

namespace welkin::observe {
namespace {

constexpr const char* kPlotGrid = "#e1e1e1";
constexpr double kCurveSample = 22;  // length of the line beside a label
constexpr double kCurveRow = 18;
constexpr double kGap = 8;

double widest_label(const std::vector<image::Tick>& ticks) {
  double widest = 0;
  for (const image::Tick& tick : ticks) widest = std::max(widest, text_width(tick.label, 12));
  return widest;
}

double legend_width(const FrameText& text) {
  double widest = 0;
  for (const LegendEntry& entry : text.legend) widest = std::max(widest, text_width(entry.label, 12));
  return text.legend.empty() ? 0 : widest + kCurveSample + 3 * kGap;
}

std::vector<image::Tick> given_ticks(const std::vector<double>& values) {
  std::vector<image::Tick> ticks;
  for (const double value : values) ticks.push_back({value, image::short_number(value)});
  return ticks;
}

// Widens a range of zero width, which would be no axis.
void widen_point(double& low, double& high, PlotScale scale) {
  if (low < high) return;
  if (low > high) low = scale == PlotScale::Log ? 0.1 : 0, high = 1;  // no values
  if (low < high) return;
  if (scale == PlotScale::Log) {
    low /= 2, high *= 2;
  } else {
    const double around = low == 0 ? 1 : std::abs(low) * 0.1;
    low -= around, high += around;
  }
}

}  // namespace

std::string plot_color(size_t index) {
  const image::Color color = image::kPalette[index % image::kPalette.size()];
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "#%02x%02x%02x", color.red, color.green, color.blue);
  return text.data();
}

double text_width(std::string_view text, double size) { return 0.58 * size * static_cast<double>(text.size()); }

SvgPage::SvgPage(int width, int height) {
  out_ << std::fixed << std::setprecision(1);
  out_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\"" << height << "\" viewBox=\"0 0 "
       << width << ' ' << height << "\" font-family=\"sans-serif\">\n";
  rectangle({0, 0, static_cast<double>(width), static_cast<double>(height)}, "#ffffff");
}

void SvgPage::line(PlotPoint from, PlotPoint to, std::string_view color, double width) {
  out_ << "<line x1=\"" << from.x << "\" y1=\"" << from.y << "\" x2=\"" << to.x << "\" y2=\"" << to.y << "\" stroke=\"" << color
       << "\" stroke-width=\"" << width << "\"/>\n";
}

void SvgPage::rectangle(const PlotBox& box, std::string_view fill, std::string_view stroke) {
  out_ << "<rect x=\"" << box.left << "\" y=\"" << box.top << "\" width=\"" << box.width << "\" height=\"" << box.height
       << "\" fill=\"" << fill << "\" stroke=\"" << stroke << "\"/>\n";
}

void SvgPage::polyline(const std::vector<PlotPoint>& points, std::string_view color, bool dashed) {
  if (points.size() < 2) return;
  out_ << "<polyline fill=\"none\" stroke=\"" << color << "\" stroke-width=\"1.8\"";
  if (dashed) out_ << " stroke-dasharray=\"6 4\"";
  out_ << " points=\"";
  for (const PlotPoint& point : points) out_ << point.x << ',' << point.y << ' ';
  out_ << "\"/>\n";
}

void SvgPage::dot(PlotPoint at, std::string_view color) {
  out_ << "<circle cx=\"" << at.x << "\" cy=\"" << at.y << "\" r=\"3\" fill=\"" << color << "\"/>\n";
}

void SvgPage::text(PlotPoint at, std::string_view words, const TextStyle& style) {
  constexpr std::array<const char*, 3> kAnchors{"start", "middle", "end"};
  out_ << "<text x=\"" << at.x << "\" y=\"" << at.y << "\" font-size=\"" << style.size << "\" fill=\"" << style.color
       << "\" text-anchor=\"" << kAnchors[static_cast<size_t>(style.anchor)] << '"';
  if (style.bold) out_ << " font-weight=\"bold\"";
  if (style.turn != 0) out_ << " transform=\"rotate(" << style.turn << ' ' << at.x << ' ' << at.y << ")\"";
  out_ << '>' << escaped_markup(words) << "</text>\n";
}

std::string SvgPage::finish() {
  out_ << "</svg>\n";
  return out_.str();
}

bool AxisRange::holds(double value) const { return std::isfinite(value) && (scale == PlotScale::Linear || value > 0); }

double AxisRange::share(double value) const {
  if (scale == PlotScale::Linear) return (value - low) / (high - low);
  return std::log(value / low) / std::log(high / low);
}

AxisRange axis_range(const PlotAxis& axis, double low, double high, double air, int most_ticks) {
  widen_point(low, high, axis.scale);
  const bool is_log = axis.scale == PlotScale::Log;
  const double more = is_log ? std::pow(high / low, air) : air * (high - low);
  AxisRange range;
  range.scale = axis.scale;
  range.low = axis.low.value_or(is_log ? low / more : low - more);
  range.high = axis.high.value_or(is_log ? high * more : high + more);
  widen_point(range.low, range.high, axis.scale);
  if (!axis.ticks.empty()) {
    range.ticks = given_ticks(axis.ticks);
    std::erase_if(range.ticks, [&](const image::Tick& tick) { return tick.value < range.low || tick.value > range.high; });
  } else {
    range.ticks =
        is_log ? image::log_ticks(range.low, range.high, most_ticks) : image::linear_ticks(range.low, range.high, most_ticks);
  }
  return range;
}

PlotBox frame_box(int width, int height, const FrameText& text, const AxisRange& y) {
  PlotBox box;
  box.left = kGap + (text.y_title.empty() ? 0 : 20) + widest_label(y.ticks) + kGap;
  box.top = text.title.empty() ? 16 : 40;
  box.width = width - box.left - std::max(20.0, legend_width(text));
  box.height = height - box.top - text.label_room - (text.x_title.empty() ? kGap : 28);
  return box;
}

void draw_frame(SvgPage& page, const PlotBox& box, const FrameText& text, const AxisRange& y, int page_width) {
  for (const image::Tick& tick : y.ticks) {
    const double at = box.bottom() - y.share(tick.value) * box.height;
    page.line({box.left, at}, {box.right(), at}, kPlotGrid);
    page.text({box.left - 6, at + 4}, tick.label, {.anchor = Anchor::End, .size = 12});
  }
  page.text({page_width / 2.0, 24}, text.title, {.anchor = Anchor::Middle, .size = 15, .bold = true});
  const double middle = box.left + box.width / 2;
  page.text({middle, box.bottom() + text.label_room + 20}, text.x_title, {.anchor = Anchor::Middle});
  page.text({18, box.top + box.height / 2}, text.y_title, {.anchor = Anchor::Middle, .turn = -90});
  double at = box.top + kCurveRow / 2;
  for (const LegendEntry& entry : text.legend) {
    const double left = box.right() + kGap;
    page.polyline({{left, at}, {left + kCurveSample, at}}, entry.color, entry.dashed);
    page.text({left + kCurveSample + 6, at + 4}, entry.label, {.size = 12});
    at += kCurveRow;
  }
}

}  // namespace welkin::observe
