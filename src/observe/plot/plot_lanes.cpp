// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string_view>

#include "core/error.h"
#include "core/text.h"
#include "observe/image/plot_area.h"
#include "observe/plot/plot_frame.h"

namespace welkin::observe {
namespace {

constexpr double kLaneHeight = 26, kLaneTop = 70, kLaneLabels = 64, kLaneMargin = 12;
constexpr double kLaneTextSize = 11;

// Black or white for a text on this colour of the palette, whichever contrasts more (relative luminance of WCAG 2.1).
std::string_view ink_on(size_t color) {
  const image::Color under = image::kPalette[color % image::kPalette.size()];
  const auto linear = [](uint8_t level) { return std::pow(level / 255.0, 2.2); };
  const double luminance = 0.2126 * linear(under.red) + 0.7152 * linear(under.green) + 0.0722 * linear(under.blue);
  return luminance < 0.2 ? "#ffffff" : kPlotInk;
}

double end_of(const LanePlot& plot) {
  double end = 0;
  for (const Lane& lane : plot.lanes) {
    for (const LaneBox& box : lane.boxes) end = std::max(end, box.end);
  }
  return end;
}

// Draws the legend of the used kinds, from left to right.
void draw_kinds(SvgPage& page, const LanePlot& plot) {
  std::set<size_t> used;
  for (const Lane& lane : plot.lanes) {
    for (const LaneBox& box : lane.boxes) used.insert(box.kind);
  }
  double left = kLaneLabels;
  for (const size_t kind : used) {
    WELKIN_CHECK(kind < plot.kinds.size(), cat("every box has a kind with a name: kind=", kind));
    page.rectangle({left, 40, 12, 12}, plot_color(kind));
    page.text({left + 18, 50}, plot.kinds[kind], {.size = kLaneTextSize});
    left += 36 + text_width(plot.kinds[kind], kLaneTextSize);
  }
}

}  // namespace

std::string svg(const LanePlot& plot) {
  const double end = std::max(end_of(plot), 1e-300);
  const double scale = (plot.width - kLaneLabels - kLaneMargin) / end;
  const double height = kLaneTop + kLaneHeight * static_cast<double>(plot.lanes.size()) + kLaneMargin;
  SvgPage page(plot.width, static_cast<int>(height));
  page.text({plot.width / 2.0, 24}, plot.title, {.anchor = Anchor::Middle, .size = 15, .bold = true});
  draw_kinds(page, plot);
  double top = kLaneTop;
  for (const Lane& lane : plot.lanes) {
    page.text({kLaneLabels - 8, top + kLaneHeight - 9}, lane.label, {.anchor = Anchor::End});
    page.rectangle({kLaneLabels, top, end * scale, kLaneHeight}, "#f2f2f2");
    for (const LaneBox& box : lane.boxes) {
      const double width = (box.end - box.begin) * scale;
      page.rectangle({kLaneLabels + box.begin * scale, top, width, kLaneHeight}, plot_color(box.kind), "#ffffff");
      if (text_width(box.text, kLaneTextSize) > width) continue;
      page.text({kLaneLabels + box.begin * scale + width / 2, top + kLaneHeight - 9}, box.text,
                {.anchor = Anchor::Middle, .size = kLaneTextSize, .color = ink_on(box.kind)});
    }
    top += kLaneHeight;
  }
  return page.finish();
}

}  // namespace welkin::observe
