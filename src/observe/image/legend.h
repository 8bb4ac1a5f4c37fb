// SPDX-License-Identifier: Apache-2.0
// The box that names the curves of a plot.
#pragma once

#include <string>
#include <vector>

#include "observe/image/raster.h"

namespace welkin::observe::image {

struct LegendRow {
  std::string label;
  Color color;
};

// Drawn in the corner of `inside` with the fewest pixels that are neither white nor grid. Draws nothing without rows.
void draw_legend(Raster& raster, const Rect& inside, const std::vector<LegendRow>& rows);

}  // namespace welkin::observe::image
