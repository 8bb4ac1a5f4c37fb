// SPDX-License-Identifier: Apache-2.0
#include "observe/image/legend.h"

#include <algorithm>
#include <limits>

#include "observe/image/lettering.h"

namespace welkin::observe::image {
namespace {

constexpr double kLegendSize = 9.5;
constexpr double kSampleWidth = 2.2;
constexpr int kLegendRow = 20;
constexpr int kLegendSample = 26;
constexpr int kLegendMargin = 8;

int pixels_drawn(const Raster& raster, const Rect& rect) {
  int drawn = 0;
  for (int y = std::max(rect.y, 0); y < std::min(rect.bottom(), raster.height()); ++y) {
    for (int x = std::max(rect.x, 0); x < std::min(rect.right(), raster.width()); ++x) {
      const Color pixel = raster.at(x, y);
      drawn += pixel != kWhite && pixel != kGridGray ? 1 : 0;
    }
  }
  return drawn;
}

Rect emptiest_corner(const Raster& raster, const Rect& inside, int width, int height) {
  Rect best{};
  int fewest = std::numeric_limits<int>::max();
  for (const int x : {inside.right() - width - kLegendMargin, inside.x + kLegendMargin}) {
    for (const int y : {inside.y + kLegendMargin, inside.bottom() - height - kLegendMargin}) {
      const Rect corner{x, y, width, height};
      const int drawn = pixels_drawn(raster, corner);
      if (drawn >= fewest) continue;
      fewest = drawn;
      best = corner;
    }
  }
  return best;
}

}  // namespace

void draw_legend(Raster& raster, const Rect& inside, const std::vector<LegendRow>& rows) {
  if (rows.empty()) return;
  double text = 0;
  for (const LegendRow& row : rows) text = std::max(text, text_width(row.label, kLegendSize));
  const int width = kLegendSample + 26 + static_cast<int>(text), height = kLegendRow * static_cast<int>(rows.size()) + 10;
  const Rect box = emptiest_corner(raster, inside, width, height);
  raster.fill(box, kWhite);
  raster.frame(box, kGridGray);
  for (size_t i = 0; i < rows.size(); ++i) {
    const double x = box.x + 8, y = box.y + 5 + kLegendRow * (static_cast<double>(i) + 0.5);
    const std::vector<Polyline> sample{{{x, y}, {x + kLegendSample, y}}};
    raster.stroke(sample, kSampleWidth, rows[i].color);
    draw_text(raster, {x + kLegendSample + 8, y}, rows[i].label, {.size_px = kLegendSize});
  }
}

}  // namespace welkin::observe::image
