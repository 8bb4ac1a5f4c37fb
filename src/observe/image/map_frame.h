// SPDX-License-Identifier: Apache-2.0
// Fields on a regular grid of latitude and longitude as maps: outlines of land over them, degrees beside them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "observe/image/raster.h"

namespace welkin::observe::image {

// What a picture covers, in degrees, from edge to edge of its cells, north on top and east to the right. `row_of` and `column_of`
// say which row and column of the field each of the picture's shows; empty: as they come.
struct MapFrame {
  double north = 90, south = -90;
  double west = 0, east = 360;
  std::vector<int> row_of{}, column_of{};
};

// Of rows at these latitudes, north or south first, and columns at these longitudes, eastwards or westwards and evenly spaced (to
// a fifth of a step), also where they go from 180 to -180 or from 360 to 0. Rows that are not evenly spaced are shown where they
// lie: each row of the picture has the nearest one. Nothing for other grids.
std::optional<MapFrame> map_frame(std::span<const double> latitude, std::span<const double> longitude);

// A field of `columns` columns as its picture has it.
std::vector<float> in_map_order(const MapFrame& frame, std::span<const float> values, int columns);

// Outlines of land (Natural Earth, 1:110m, public domain) inside of `picture`, where the build has them.
void draw_outlines(Raster& raster, const Rect& picture, const MapFrame& frame);
// Degrees below `picture` and to its left, inside of the room that is kept for them.
void draw_degrees(Raster& raster, const Rect& picture, const MapFrame& frame);

inline constexpr int kDegreesBelow = 18, kDegreesBeside = 38;  // pixels of that room

bool has_outlines();

}  // namespace welkin::observe::image
