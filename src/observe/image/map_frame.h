// SPDX-License-Identifier: Apache-2.0
// Fields on a regular grid of latitude and longitude as maps: outlines of land over them, degrees beside them.
#pragma once

#include <optional>
#include <span>

#include "observe/image/raster.h"

namespace welkin::observe::image {

// What a picture covers, in degrees, from edge to edge of its cells.
struct MapFrame {
  double north = 90, south = -90;
  double west = 0, east = 360;
};

// Of rows at these latitudes and columns at these longitudes, both evenly spaced (to a fifth of a step), north first and
// eastwards. Nothing for other grids.
std::optional<MapFrame> map_frame(std::span<const double> latitude, std::span<const double> longitude);

// Outlines of land (Natural Earth, 1:110m, public domain) inside of `picture`, where the build has them.
void draw_outlines(Raster& raster, const Rect& picture, const MapFrame& frame);
// Degrees below `picture` and to its left, inside of the room that is kept for them.
void draw_degrees(Raster& raster, const Rect& picture, const MapFrame& frame);

inline constexpr int kDegreesBelow = 18, kDegreesBeside = 38;  // pixels of that room

bool has_outlines();

}  // namespace welkin::observe::image
