// SPDX-License-Identifier: Apache-2.0
#include "observe/image/lettering.h"

#include <algorithm>

#include "observe/image/glyphs.h"

namespace welkin::observe::image {
namespace {

double share_of(Anchor anchor) {
  switch (anchor) {
    case Anchor::Start:
      return 0;
    case Anchor::Middle:
      return 0.5;
    case Anchor::End:
      return 1;
  }
  return 0;
}

}  // namespace

double text_width(std::string_view text, double size_px) {
  double width = 0;
  for (const char c : text) width += glyph_of(c).width + kGlyphGap;
  return text.empty() ? 0.0 : (width - kGlyphGap) * size_px;
}

double fitting_size(std::string_view text, double wanted_px, double room_px) {
  const double width = text_width(text, wanted_px);
  return width <= room_px ? wanted_px : std::max(wanted_px * room_px / width, 0.6 * wanted_px);
}

void draw_text(Raster& raster, Point at, std::string_view text, const TextStyle& style) {
  if (text.empty()) return;
  raster.note_text(text);
  const double down = -share_of(style.across) * style.size_px;
  double along = -share_of(style.along) * text_width(text, style.size_px);
  std::vector<Polyline> lines;
  for (const char c : text) {
    const Glyph glyph = glyph_of(c);
    for (Polyline line : glyph.strokes) {
      for (Point& p : line) {
        const double u = along + p.x * style.size_px, v = down + p.y * style.size_px;
        p = style.turn == Turn::None ? Point{at.x + u, at.y + v} : Point{at.x + v, at.y - u};
      }
      lines.push_back(std::move(line));
    }
    along += (glyph.width + kGlyphGap) * style.size_px;
  }
  const double weight = style.bold ? 1.6 : 1.0;
  raster.stroke(lines, std::max(weight * kStrokeWidth * style.size_px, 1.1), style.color);
}

}  // namespace welkin::observe::image
