// SPDX-License-Identifier: Apache-2.0
// A figure of several fields side by side, each with a title and colour bar.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "observe/image/color_map.h"
#include "observe/image/map_frame.h"
#include "observe/image/raster.h"

namespace welkin::observe::image {

struct Panel {
  std::string title{};
  std::span<const float> values{};  // rows * columns, row 0 on top unless `map` says otherwise; not finite: no value, in grey
  int rows = 0;
  int columns = 0;
  ColorMap colors = ColorMap::Turbo;
  std::optional<double> low{};  // empty: autoscaled, each panel by itself (color_map.h)
  std::optional<double> high{};
  std::optional<MapFrame> map{};  // of a field on the sphere: outlines of land over it, degrees beside it
};

struct PanelFigure {
  int width = 1200;
  int height = 600;
  int panels_per_row = 0;  // 0: all in one row up to four, then the squarest grid
  std::string title{};     // above all panels; empty: no room is kept
  std::vector<Panel> panels{};
};

// Cells stay square; each panel is as large as its place allows. Colour bars are to the right of a panel or below it, whichever
// leaves more room.
Raster draw_panels(const PanelFigure& figure);

}  // namespace welkin::observe::image
