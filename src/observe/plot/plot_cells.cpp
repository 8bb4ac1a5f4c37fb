// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "observe/image/color_map.h"
#include "observe/plot/plot_frame.h"

namespace welkin::observe {
namespace {

constexpr double kCellHeight = 24, kLeastWidth = 44, kCellsTop = 64, kCellMargin = 12;
constexpr double kDark = 0.45;  // fraction of the deepest colour above which a number is white

std::string fill_of(double value, double largest) {
  const image::Color color = image::color_at(image::ColorMap::Diverging, 0.5 - 0.5 * std::clamp(value / largest, -1.0, 1.0));
  return cat("rgb(", int{color.red}, ",", int{color.green}, ",", int{color.blue}, ")");
}

// Width of a column with its label and numbers.
double column_width(const std::string& label) { return std::max(kLeastWidth, text_width(label, 12) + 10); }

}  // namespace

std::string svg(const CellPlot& plot) {
  double left = kCellMargin, across = 0;
  for (const BarGroup& row : plot.rows) left = std::max(left, kCellMargin + text_width(row.label, 12) + 8);
  for (const std::string& column : plot.columns) across += column_width(column);
  const double width = std::max(left + across, text_width(plot.title, 15) * 1.1) + kCellMargin;
  SvgPage page(static_cast<int>(std::ceil(width)),
               static_cast<int>(kCellsTop + kCellHeight * static_cast<double>(plot.rows.size()) + kCellMargin));
  page.text({kCellMargin, 24}, plot.title, {.size = 15, .bold = true});
  double x = left;
  for (const std::string& column : plot.columns) {
    page.text({x + column_width(column) / 2, kCellsTop - 8}, column, {.anchor = Anchor::Middle, .size = 12});
    x += column_width(column);
  }
  double y = kCellsTop;
  for (const BarGroup& row : plot.rows) {
    WELKIN_CHECK(row.values.size() == plot.columns.size(),
                 cat("cells ", row.label, ": ", row.values.size(), " values for ", plot.columns.size(), " columns"));
    page.text({left - 8, y + kCellHeight / 2 + 4}, row.label, {.anchor = Anchor::End, .size = 12});
    x = left;
    for (size_t i = 0; i < row.values.size(); ++i) {
      const double value = row.values[i], cell = column_width(plot.columns[i]);
      const bool is_empty = !std::isfinite(value);
      page.rectangle({x, y, cell, kCellHeight}, is_empty ? "#f2f2f2" : fill_of(value, plot.largest), "#ffffff");
      const bool is_dark = !is_empty && std::abs(value) > kDark * plot.largest;
      page.text({x + cell / 2, y + kCellHeight / 2 + 4}, is_empty ? "-" : cat(std::lround(value)),
                {.anchor = Anchor::Middle, .size = 12, .color = is_dark ? "#ffffff" : kPlotInk});
      x += cell;
    }
    y += kCellHeight;
  }
  return page.finish();
}

}  // namespace welkin::observe
