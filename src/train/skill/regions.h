// SPDX-License-Identifier: Apache-2.0
// Parts of the globe over which scores are means, and how much each point counts. Weights are areas of cells, as WeatherBench2
// has them: sin(north) - sin(south) of the cell of a row, whose borders lie halfway between rows and, on a grid that reaches the
// poles, at the poles (data/sample/row_cells.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace welkin::train {

struct ScoreRegion {
  std::string name;
  double south = -90, north = 90, west = 0, east = 360;  // degrees; west > east goes over the meridian of 0
};

// "global,tropics,nh,sh" (tropics 20S to 20N, the others beyond), or boxes such as europe=35:75:-12.5:42.5 (south, north, west,
// east). ConfigError.
std::vector<ScoreRegion> parse_regions(const std::string& text);

// (H, W) row-major; 0 outside of the region. ConfigError where it holds no point.
std::vector<double> region_weights(const ScoreRegion& region, const std::vector<double>& latitude,
                                   const std::vector<double>& longitude);

}  // namespace welkin::train
