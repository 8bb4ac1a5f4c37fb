// SPDX-License-Identifier: Apache-2.0
// Colour maps and scales for numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "observe/image/raster.h"

namespace welkin::observe::image {

enum class ColorMap {
  Turbo,      // rainbow order without its false edges; used by the tutorials
  Viridis,    // even in lightness, safe for colour-blind readers and in print
  Diverging,  // blue below, red above, almost white at the middle: for differences
};

// `share` runs from 0 (lowest) to 1 (highest) and is clamped; NaN gives kMissingGray.
Color color_at(ColorMap map, double share);

// A map for values from low to high.
struct ColorScale {
  ColorMap map = ColorMap::Turbo;
  double low = 0;
  double high = 1;

  Color operator()(double value) const { return color_at(map, (value - low) / (high - low)); }
};

// From the smallest to the largest finite value, symmetric about 0 for Diverging. Given ends take precedence. A range of zero
// width is widened.
ColorScale scale_for(ColorMap map, std::span<const float> values, std::optional<double> low = {},
                     std::optional<double> high = {});

}  // namespace welkin::observe::image
