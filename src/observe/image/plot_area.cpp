// SPDX-License-Identifier: Apache-2.0
#include "observe/image/plot_area.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "observe/image/lettering.h"

namespace welkin::observe::image {
namespace {

constexpr double kTickLabelSize = 9;
constexpr double kAxisLabelSize = 10;
constexpr double kPlotTitleSize = 12;
constexpr int kTickLength = 5;

int widest_label(const std::vector<Tick>& ticks) {
  double width = 0;
  for (const Tick& tick : ticks) width = std::max(width, text_width(tick.label, kTickLabelSize));
  return static_cast<int>(std::ceil(width));
}

Rect inside_of(const PlotStyle& style, const std::vector<Tick>& y_ticks) {
  const int left = 20 + (style.y_label.empty() ? 0 : 24) + widest_label(y_ticks) + kTickLength + 5;
  const int right = 30;
  const int top = style.title.empty() ? 22 : 46;
  const int bottom = 36 + (style.x_label.empty() ? 0 : 24);
  return {left, top, std::max(style.width - left - right, 10), std::max(style.height - top - bottom, 10)};
}

int pixel_of(double position) { return static_cast<int>(std::floor(position)); }

}  // namespace

double Axis::share(double value) const {
  if (scale == AxisScale::Log) return (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
  return (value - low) / (high - low);
}

PlotArea::PlotArea(const PlotStyle& style, Axis x, Axis y, std::vector<Tick> x_ticks, std::vector<Tick> y_ticks)
    : style_(style),
      x_(x),
      y_(y),
      x_ticks_(std::move(x_ticks)),
      y_ticks_(std::move(y_ticks)),
      inside_(inside_of(style, y_ticks_)) {}

Point PlotArea::pixel(double x, double y) const {
  return {inside_.x + x_.share(x) * inside_.width, inside_.bottom() - y_.share(y) * inside_.height};
}

void PlotArea::draw_grid(Raster& raster) const {
  for (const Tick& tick : y_ticks_) raster.fill({inside_.x, pixel_of(pixel(x_.low, tick.value).y), inside_.width, 1}, kGridGray);
  for (const Tick& tick : x_ticks_) raster.fill({pixel_of(pixel(tick.value, y_.low).x), inside_.y, 1, inside_.height}, kGridGray);
}

void PlotArea::draw_axes(Raster& raster) const {
  raster.frame(inside_, kInk);
  for (const Tick& tick : y_ticks_) {
    const double y = pixel(x_.low, tick.value).y;
    raster.fill({inside_.x - 1 - kTickLength, pixel_of(y), kTickLength, 1}, kInk);
    draw_text(raster, {inside_.x - kTickLength - 5.0, std::floor(y) + 0.5}, tick.label,
              {.size_px = kTickLabelSize, .along = Anchor::End});
  }
  for (const Tick& tick : x_ticks_) {
    const double x = pixel(tick.value, y_.low).x;
    raster.fill({pixel_of(x), inside_.bottom() + 1, 1, kTickLength}, kInk);
    draw_text(raster, {std::floor(x) + 0.5, inside_.bottom() + kTickLength + 6.0}, tick.label,
              {.size_px = kTickLabelSize, .along = Anchor::Middle, .across = Anchor::Start});
  }
  const Point middle{inside_.x + inside_.width / 2.0, inside_.y + inside_.height / 2.0};
  draw_text(raster, {middle.x, style_.height - 16.0}, style_.x_label, {.size_px = kAxisLabelSize, .along = Anchor::Middle});
  draw_text(raster, {22, middle.y}, style_.y_label, {.size_px = kAxisLabelSize, .along = Anchor::Middle, .turn = Turn::Left});
  draw_text(raster, {middle.x, 24}, style_.title,
            {.size_px = fitting_size(style_.title, kPlotTitleSize, style_.width - 20), .along = Anchor::Middle});
}

}  // namespace welkin::observe::image
