// SPDX-License-Identifier: Apache-2.0
// Text on a raster.
#pragma once

#include <string_view>

#include "observe/image/raster.h"

namespace welkin::observe::image {

enum class Anchor { Start, Middle, End };
enum class Turn { None, Left };  // Left: runs upwards, for the label of a vertical axis

struct TextStyle {
  double size_px = 10;  // height of a capital letter
  Color color = kInk;
  Anchor along = Anchor::Start;    // the part of the text at the given point, along its direction
  Anchor across = Anchor::Middle;  // Start: top of the capitals, Middle, End: the baseline
  Turn turn = Turn::None;
  bool bold = false;
};

// Width from the left edge of the first letter to the right edge of the last, in pixels.
double text_width(std::string_view text, double size_px);

// The largest size up to `wanted_px` at which the text is no wider than `room_px`, not below 60 % of it.
double fitting_size(std::string_view text, double wanted_px, double room_px);

void draw_text(Raster& raster, Point at, std::string_view text, const TextStyle& style);

}  // namespace welkin::observe::image
