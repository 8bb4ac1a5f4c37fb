// SPDX-License-Identifier: Apache-2.0
// The letters of printable ASCII as strokes, drawn for Welkin: they scale to any size and need no font file.
#pragma once

#include <vector>

#include "observe/image/raster.h"

namespace welkin::observe::image {

// In units of the height of a capital letter: x from the left edge, y from the top of a capital downwards (the baseline is y =
// 1).
struct Glyph {
  std::vector<Polyline> strokes;
  double width = 0;
};

inline constexpr double kGlyphGap = 0.25;     // between letters
inline constexpr double kStrokeWidth = 0.12;  // of regular weight

// Characters other than printable ASCII give the glyph of '?'.
Glyph glyph_of(char character);

}  // namespace welkin::observe::image
