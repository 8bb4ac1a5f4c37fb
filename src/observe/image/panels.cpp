// SPDX-License-Identifier: Apache-2.0
#include "observe/image/panels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/text.h"
#include "observe/image/lettering.h"
#include "observe/image/ticks.h"

namespace welkin::observe::image {
namespace {

constexpr int kMargin = 18;
constexpr int kTitleHeight = 30;
constexpr int kBarGap = 12;
constexpr int kBarThickness = 14;
constexpr int kBarLabelsBeside = 70;
constexpr int kBarLabelsBelow = 24;
constexpr double kTitleSize = 12;
constexpr double kLabelSize = 8.5;

struct PanelLayout {
  Rect picture;
  Rect bar;
  bool bar_below = false;
};

// The part of `place` for the picture, as large as square cells allow.
Rect fit_picture(const Panel& panel, const Rect& place, int taken_x, int taken_y) {
  const double scale = std::min(double(place.width - taken_x) / panel.columns, double(place.height - taken_y) / panel.rows);
  return {0, 0, std::max(1, static_cast<int>(panel.columns * scale)), std::max(1, static_cast<int>(panel.rows * scale))};
}

PanelLayout lay_out(const Panel& panel, const Rect& place) {
  const int beside = kBarGap + kBarThickness + kBarLabelsBeside, below = kBarGap + kBarThickness + kBarLabelsBelow;
  const int left = panel.map ? kDegreesBeside : 0, under = panel.map ? kDegreesBelow : 0;
  const Rect with_beside = fit_picture(panel, place, left + beside, kTitleHeight + under);
  const Rect with_below = fit_picture(panel, place, left, kTitleHeight + under + below);
  PanelLayout layout;
  layout.bar_below = with_below.width > with_beside.width;
  Rect& picture = layout.picture = layout.bar_below ? with_below : with_beside;
  const int used_x = left + picture.width + (layout.bar_below ? 0 : beside),
            used_y = kTitleHeight + picture.height + under + (layout.bar_below ? below : 0);
  picture.x = place.x + left + std::max(0, (place.width - used_x) / 2);
  picture.y = place.y + kTitleHeight + std::max(0, (place.height - used_y) / 2);
  layout.bar = layout.bar_below ? Rect{picture.x, picture.bottom() + under + kBarGap, picture.width, kBarThickness}
                                : Rect{picture.right() + kBarGap, picture.y, kBarThickness, picture.height};
  return layout;
}

// The cells under a pixel: several if the picture is smaller than the field, one if it is larger.
struct CellRange {
  int first = 0, end = 0;
  bool operator==(const CellRange&) const = default;
};

CellRange cells_under(int pixel, int pixels, int cells) {
  const int first = static_cast<int>(int64_t{pixel} * cells / pixels);
  const int end = static_cast<int>((int64_t{pixel} + 1) * cells / pixels);
  return {first, std::max(end, first + 1)};
}

// The mean of finite values; NaN if there is none.
double mean_of(const Panel& panel, const CellRange& rows, const CellRange& columns) {
  double sum = 0;
  int count = 0;
  for (int row = rows.first; row < rows.end; ++row) {
    for (int column = columns.first; column < columns.end; ++column) {
      const float value =
          panel.values[static_cast<size_t>(row) * static_cast<size_t>(panel.columns) + static_cast<size_t>(column)];
      if (!std::isfinite(value)) continue;
      sum += value;
      ++count;
    }
  }
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

// Pixels over the same cells have one colour, which is found once.
void draw_picture(Raster& raster, const Panel& panel, const Rect& picture, const ColorScale& scale) {
  std::vector<Color> line(static_cast<size_t>(picture.width));
  CellRange rows_before;
  for (int y = 0; y < picture.height; ++y) {
    const CellRange rows = cells_under(y, picture.height, panel.rows);
    CellRange columns_before;
    for (int x = 0; x < picture.width && rows != rows_before; ++x) {
      const CellRange columns = cells_under(x, picture.width, panel.columns);
      const auto at = static_cast<size_t>(x);
      line[at] = columns == columns_before ? line[at - 1] : scale(mean_of(panel, rows, columns));
      columns_before = columns;
    }
    rows_before = rows;
    for (int x = 0; x < picture.width; ++x) raster.set(picture.x + x, picture.y + y, line[static_cast<size_t>(x)]);
  }
  raster.frame(picture, kInk);
}

// Ticks at both ends, and at round numbers between that do not overlap them.
std::vector<Tick> bar_ticks(const ColorScale& scale) {
  std::vector<Tick> ticks{{scale.low, short_number(scale.low)}};
  for (const Tick& tick : linear_ticks(scale.low, scale.high, 7)) {
    const double share = (tick.value - scale.low) / (scale.high - scale.low);
    if (share > 0.15 && share < 0.85) ticks.push_back(tick);
  }
  ticks.push_back({scale.high, short_number(scale.high)});
  return ticks;
}

void draw_bar_below(Raster& raster, const Rect& bar, const ColorScale& scale) {
  for (int x = 0; x < bar.width; ++x) raster.fill({bar.x + x, bar.y, 1, bar.height}, color_at(scale.map, (x + 0.5) / bar.width));
  raster.frame(bar, kInk);
  const auto ticks = bar_ticks(scale);
  for (size_t i = 0; i < ticks.size(); ++i) {
    const double x = bar.x + bar.width * (ticks[i].value - scale.low) / (scale.high - scale.low);
    const Anchor along = i == 0 ? Anchor::Start : i + 1 == ticks.size() ? Anchor::End : Anchor::Middle;
    raster.fill({std::clamp(static_cast<int>(x), bar.x, bar.right() - 1), bar.bottom() + 1, 1, 4}, kInk);
    draw_text(raster, {x, bar.bottom() + 8.0}, ticks[i].label, {.size_px = kLabelSize, .along = along, .across = Anchor::Start});
  }
}

void draw_bar_beside(Raster& raster, const Rect& bar, const ColorScale& scale) {
  for (int y = 0; y < bar.height; ++y)
    raster.fill({bar.x, bar.y + y, bar.width, 1}, color_at(scale.map, 1 - (y + 0.5) / bar.height));
  raster.frame(bar, kInk);
  for (const Tick& tick : bar_ticks(scale)) {
    const double y = bar.bottom() - bar.height * (tick.value - scale.low) / (scale.high - scale.low);
    raster.fill({bar.right() + 1, std::clamp(static_cast<int>(y), bar.y, bar.bottom() - 1), 4, 1}, kInk);
    draw_text(raster, {bar.right() + 9.0, y}, tick.label,
              {.size_px = fitting_size(tick.label, kLabelSize, kBarLabelsBeside - 10)});
  }
}

void draw_panel(Raster& raster, Panel panel, const Rect& place) {
  std::vector<float> ordered;
  if (panel.map && (!panel.map->row_of.empty() || !panel.map->column_of.empty()))
    panel.values = ordered = in_map_order(*panel.map, panel.values, panel.columns);
  const PanelLayout layout = lay_out(panel, place);
  const ColorScale scale = scale_for(panel.colors, panel.values, panel.low, panel.high);
  draw_text(raster, {layout.picture.x + layout.picture.width / 2.0, layout.picture.y - 10.0}, panel.title,
            {.size_px = fitting_size(panel.title, kTitleSize, place.width), .along = Anchor::Middle, .across = Anchor::End});
  draw_picture(raster, panel, layout.picture, scale);
  if (panel.map) {
    draw_outlines(raster, layout.picture, *panel.map);
    draw_degrees(raster, layout.picture, *panel.map);
  }
  if (layout.bar_below) {
    draw_bar_below(raster, layout.bar, scale);
  } else {
    draw_bar_beside(raster, layout.bar, scale);
  }
}

int columns_of(const PanelFigure& figure) {
  const int count = static_cast<int>(figure.panels.size());
  if (figure.panels_per_row > 0) return std::min(figure.panels_per_row, count);
  return count <= 4 ? count : static_cast<int>(std::ceil(std::sqrt(count)));
}

}  // namespace

Raster draw_panels(const PanelFigure& figure) {
  WELKIN_CHECK(!figure.panels.empty(), "a figure without panels");
  Raster raster(figure.width, figure.height);
  const int top = figure.title.empty() ? 0 : kTitleHeight + kMargin / 2;
  draw_text(raster, {figure.width / 2.0, top / 2.0 + 4}, figure.title,
            {.size_px = fitting_size(figure.title, kTitleSize + 2, figure.width), .along = Anchor::Middle, .bold = true});
  const int columns = columns_of(figure), count = static_cast<int>(figure.panels.size());
  const int rows = (count + columns - 1) / columns;
  const int width = figure.width / columns, height = (figure.height - top) / rows;
  for (int i = 0; i < count; ++i) {
    const Panel& panel = figure.panels[static_cast<size_t>(i)];
    WELKIN_CHECK(panel.rows > 0 && panel.columns > 0 &&
                     panel.values.size() == static_cast<size_t>(panel.rows) * static_cast<size_t>(panel.columns),
                 cat("panel ", panel.title, ": ", panel.values.size(), " values for ", panel.rows, " x ", panel.columns));
    const Rect place{i % columns * width + kMargin, top + i / columns * height + kMargin, width - 2 * kMargin,
                     height - 2 * kMargin};
    draw_panel(raster, panel, place);
  }
  return raster;
}

}  // namespace welkin::observe::image
