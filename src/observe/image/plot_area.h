// SPDX-License-Identifier: Apache-2.0
// The frame of a plot: the area for data, and its surroundings. Internal to the plots.
#pragma once

#include <array>
#include <vector>

#include "observe/image/plot.h"
#include "observe/image/ticks.h"

namespace welkin::observe::image {

// Maps a range of numbers to a range of pixels.
struct Axis {
  double low = 0;
  double high = 1;
  AxisScale scale = AxisScale::Linear;

  double share(double value) const;  // 0 at low, 1 at high
};

// Okabe and Ito, "Color Universal Design" (2008), without black and without the yellow, which is invisible on white.
inline constexpr std::array<Color, 6> kPalette{
    {{0, 114, 178}, {213, 94, 0}, {0, 158, 115}, {204, 121, 167}, {86, 180, 233}, {230, 159, 0}}};

class PlotArea {
 public:
  // `x_ticks` and `y_ticks` determine the room for labels.
  PlotArea(const PlotStyle& style, Axis x, Axis y, std::vector<Tick> x_ticks, std::vector<Tick> y_ticks);

  const Rect& inside() const { return inside_; }
  Point pixel(double x, double y) const;

  void draw_grid(Raster& raster) const;  // below the data
  void draw_axes(Raster& raster) const;  // above it: frame, ticks, labels, title

 private:
  const PlotStyle& style_;
  Axis x_;
  Axis y_;
  std::vector<Tick> x_ticks_;
  std::vector<Tick> y_ticks_;
  Rect inside_;
};

}  // namespace welkin::observe::image
