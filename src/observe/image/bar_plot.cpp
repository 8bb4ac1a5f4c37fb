// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "observe/image/lettering.h"
#include "observe/image/plot.h"
#include "observe/image/plot_area.h"

namespace welkin::observe::image {
namespace {

constexpr double kBarLabelSize = 9;
constexpr double kBarShare = 0.62;  // fraction of its place along the axis

bool drawable_bar(const Bar& bar) { return std::abs(bar.value) <= 1e100; }  // false for NaN; larger ones overflow the axis

Axis value_axis(const PlotStyle& style, const std::vector<Bar>& bars) {
  double low = 0, high = 0;
  for (const Bar& bar : bars) {
    if (!drawable_bar(bar)) continue;
    low = std::min(low, bar.value);
    high = std::max(high, bar.value);
  }
  if (low == high) high = 1;
  const double air = 0.1 * (high - low);  // room for the values at the ends of the bars
  return {style.y_low.value_or(low < 0 ? low - air : 0.0), style.y_high.value_or(high > 0 ? high + air : 0.0)};
}

void draw_bar(Raster& raster, const PlotArea& area, const Bar& bar, size_t index, double room) {
  const double middle = area.pixel(static_cast<double>(index) + 0.5, 0).x, half = kBarShare * room / 2;
  const double zero = area.pixel(0, 0).y;
  draw_text(raster, {middle, area.inside().bottom() + 10.0}, bar.label,
            {.size_px = fitting_size(bar.label, kBarLabelSize, room - 6), .along = Anchor::Middle, .across = Anchor::Start});
  if (!drawable_bar(bar)) {
    draw_text(raster, {middle, zero - 6}, "no value",
              {.size_px = fitting_size("no value", kBarLabelSize, room), .along = Anchor::Middle, .across = Anchor::End});
    return;
  }
  const double end = area.pixel(0, bar.value).y;
  const int top = static_cast<int>(std::lround(std::min(zero, end))), bottom = static_cast<int>(std::lround(std::max(zero, end)));
  const int left = static_cast<int>(std::lround(middle - half)), right = static_cast<int>(std::lround(middle + half));
  raster.fill({left, top, right - left, bottom - top}, kPalette[0]);
  const std::string value = short_number(bar.value);
  const bool up = bar.value >= 0;
  draw_text(raster, {middle, up ? end - 5 : end + 5}, value,
            {.size_px = fitting_size(value, kBarLabelSize, room - 4),
             .along = Anchor::Middle,
             .across = up ? Anchor::End : Anchor::Start});
}

}  // namespace

Raster draw_bars(const PlotStyle& style, const std::vector<Bar>& bars) {
  const double count = static_cast<double>(std::max<size_t>(bars.size(), 1));
  const Axis up = value_axis(style, bars);
  const PlotArea area(style, {0, count}, up, {}, linear_ticks(up.low, up.high, std::max(style.height / 60, 3)));
  Raster raster(style.width, style.height);
  area.draw_grid(raster);
  for (size_t i = 0; i < bars.size(); ++i) draw_bar(raster, area, bars[i], i, area.inside().width / count);
  const int zero = static_cast<int>(std::floor(area.pixel(0, 0).y));
  if (up.low < 0) raster.fill({area.inside().x, zero, area.inside().width, 1}, kInk);
  area.draw_axes(raster);
  return raster;
}

}  // namespace welkin::observe::image
