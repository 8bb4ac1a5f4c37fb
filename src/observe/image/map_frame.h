// SPDX-License-Identifier: Apache-2.0
// Fields on a regular grid of latitude and longitude as maps: outlines of land over them, degrees beside them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "observe/image/raster.h"

namespace welkin::observe::image {

// Extent of a picture in degrees, between the edges of its cells, with north on top and east to the right. `row_of` and
// `column_of` give the field's row and column for each of the picture's; empty: unchanged order.
struct MapFrame {
  double north = 90, south = -90;
  double west = 0, east = 360;
  std::vector<int> row_of{}, column_of{};
};

// A frame for rows at these latitudes, north or south first, and columns at these longitudes, eastwards or westwards, evenly
// spaced (to a fifth of a step), also across 180 to -180 and 360 to 0. For unevenly spaced rows each row of the picture shows
// the nearest one. Nothing for other grids.
std::optional<MapFrame> map_frame(std::span<const double> latitude, std::span<const double> longitude);

// The values of a field in the order of its picture.
std::vector<float> in_map_order(const MapFrame& frame, std::span<const float> values, int columns);

// Draws outlines of land (Natural Earth, 1:110m, public domain) inside of `picture`, if the build has them.
void draw_outlines(Raster& raster, const Rect& picture, const MapFrame& frame);
// Draws degrees below `picture` and to its left, in the room kept for them.
void draw_degrees(Raster& raster, const Rect& picture, const MapFrame& frame);

inline constexpr int kDegreesBelow = 18, kDegreesBeside = 38;  // pixels of that room

bool has_outlines();

}  // namespace welkin::observe::image
