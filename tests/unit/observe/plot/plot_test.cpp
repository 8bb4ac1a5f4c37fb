// SPDX-License-Identifier: Apache-2.0
#include "observe/plot/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>

#include "core/error.h"
#include "core/text.h"
#include "number_close.h"
#include "observe/image/color_map.h"

namespace welkin::observe {
namespace {

using testing::HasSubstr;
using testing::Not;

size_t count_of(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

// Centres of the dots.
std::vector<std::pair<double, double>> dots(const std::string& page) {
  std::vector<std::pair<double, double>> found;
  const std::regex circle("<circle cx=\"([0-9.]+)\" cy=\"([0-9.]+)\"");
  for (std::sregex_iterator it(page.begin(), page.end(), circle), end; it != end; ++it) {
    found.emplace_back(std::stod((*it)[1]), std::stod((*it)[2]));
  }
  return found;
}

LinePlot scaling_plot() {
  LinePlot plot;
  plot.title = "strong & weak";
  plot.x = {.title = "ranks", .scale = PlotScale::Log, .ticks = {1, 2, 4, 8}};
  plot.y = {.title = "samples/s", .scale = PlotScale::Log};
  plot.curves = {{.label = "ideal", .x = {1, 2, 4, 8}, .y = {10, 20, 40, 80}, .dashed = true, .markers = false},
                 {.label = "measured <here>", .x = {1, 2, 4, 8}, .y = {10, 19, 35, 60}}};
  return plot;
}

constexpr tests::Stated kTenths{0.2, "places are written in tenths of a pixel"};

TEST(SvgPlot, LogAxesPutEqualRatiosAtEqualDistances) {
  LinePlot plot = scaling_plot();
  plot.curves[1].y = {10, 20, 40, 80};
  const auto places = dots(svg(plot));
  ASSERT_EQ(places.size(), 4U);
  for (size_t i = 2; i < 4; ++i) {
    EXPECT_TRUE(tests::within(places[i].first - places[i - 1].first, places[1].first - places[0].first, kTenths));
    EXPECT_TRUE(tests::within(places[i].second - places[i - 1].second, places[1].second - places[0].second, kTenths));
  }
  EXPECT_LT(places[3].second, places[0].second);  // up is less
}

TEST(SvgPlot, PagesStandBelowOneAnother) {
  const std::string page = svg(scaling_plot());
  const std::string whole = stacked("both & more", {page, page});
  EXPECT_THAT(whole, HasSubstr("height=\"996\""));
  EXPECT_THAT(whole, HasSubstr("both &amp; more"));
  EXPECT_THAT(whole, HasSubstr("<svg y=\"36\" "));
  EXPECT_THAT(whole, HasSubstr("<svg y=\"516\" "));
  EXPECT_EQ(count_of(whole, "<svg "), 3U);
  EXPECT_EQ(count_of(whole, "</svg>"), 3U);
}

TEST(SvgPlot, ATitleHasRoomAboveNarrowPages) {
  const std::string page = stacked(std::string(60, 'm'), {svg(LinePlot{.width = 100, .height = 80})});
  std::smatch width;
  ASSERT_TRUE(std::regex_search(page, width, std::regex("width=\"(\\d+)\"")));
  EXPECT_GT(std::stoi(width[1]), 400);
}

TEST(SvgPlot, NamesWhatItShowsAndEscapesIt) {
  const std::string page = svg(scaling_plot());
  EXPECT_THAT(page, HasSubstr("strong &amp; weak"));
  EXPECT_THAT(page, HasSubstr("measured &lt;here&gt;"));
  EXPECT_THAT(page, HasSubstr(">ranks</text>"));
  EXPECT_THAT(page, HasSubstr(">samples/s</text>"));
  for (const char* tick : {">1</text>", ">2</text>", ">4</text>", ">8</text>"}) EXPECT_THAT(page, HasSubstr(tick));
  EXPECT_EQ(count_of(page, "stroke-dasharray"), 2U);  // the curve and its place in the legend
  EXPECT_EQ(page.substr(0, 4), "<svg");
  EXPECT_EQ(page.substr(page.size() - 7), "</svg>\n");
}

TEST(SvgPlot, GapsCutACurveAndValuesThatHaveNoLogarithmAreLeftOut) {
  LinePlot plot;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  plot.curves = {{.x = {0, 1, 2, 3, 4}, .y = {1, 2, nan, 2, 1}}};
  const std::string page = svg(plot);
  EXPECT_EQ(count_of(page, "<polyline"), 2U);
  EXPECT_EQ(dots(page).size(), 4U);
  plot.y.scale = PlotScale::Log;
  plot.curves = {{.x = {0, 1, 2, 3}, .y = {1, 0, -1, 10}}};
  EXPECT_EQ(dots(svg(plot)).size(), 2U);
}

TEST(SvgPlot, SpreadsAreDrawnThroughTheirPoints) {
  LinePlot plot;
  plot.curves = {{.x = {1, 2}, .y = {5, 6}, .low = {4, 5}, .high = {6, 8}}};
  const std::string page = svg(plot);
  EXPECT_EQ(count_of(page, "stroke-width=\"1.5\""), 2U);
}

TEST(SvgPlot, EmptyPlotsArePages) {
  EXPECT_THAT(svg(LinePlot{}), HasSubstr("</svg>"));
  EXPECT_THAT(svg(BarPlot{}), HasSubstr("</svg>"));
  LinePlot one;
  one.curves = {{.x = {3}, .y = {0}}};
  EXPECT_EQ(dots(svg(one)).size(), 1U);
}

TEST(SvgPlot, BarsAreAsHighAsTheirValues) {
  BarPlot plot;
  plot.series = {"samples/s"};
  plot.groups = {{"a", {10}}, {"b", {20}}, {"c", {std::nan("")}}};
  const std::string page = svg(plot);
  std::vector<double> heights;
  const std::regex bar("height=\"([0-9.]+)\" fill=\"#0072b2\"");
  for (std::sregex_iterator it(page.begin(), page.end(), bar), end; it != end; ++it) heights.push_back(std::stod((*it)[1]));
  ASSERT_EQ(heights.size(), 2U);
  EXPECT_TRUE(tests::within(heights[1], 2 * heights[0], kTenths));
  EXPECT_THAT(page, HasSubstr(">10</text>"));
  EXPECT_THAT(page, Not(HasSubstr("rotate(-30")));
}

TEST(SvgPlot, StacksAddUpAndLongLabelsTurn) {
  BarPlot plot;
  plot.series = {"forward", "backward"};
  plot.stacked = true;
  plot.width = 300;
  plot.groups = {{"a label that is longer than its bar", {1, 2}}, {"another of the same length or more", {1, 3}}};
  const std::string page = svg(plot);
  EXPECT_THAT(page, HasSubstr("rotate(-30"));
  EXPECT_THAT(page, HasSubstr(">forward</text>"));
  EXPECT_EQ(count_of(page, "fill=\"#d55e00\""), 2U);
}

TEST(SvgPlot, TheHighestNumberStandsWithinTheFrame) {
  for (const int height : {200, 320, 600}) {
    BarPlot plot;
    plot.series = {"samples/s"};
    plot.height = height;
    plot.groups = {{"train_path=/a/path/that/is/longer/than/its/bar/by/far/and/more", {99.5}}, {std::string(60, 'b'), {141.9}}};
    const std::string page = svg(plot);
    std::smatch frame, number;
    ASSERT_TRUE(std::regex_search(page, frame, std::regex("<rect x=\"[0-9.]+\" y=\"([0-9.]+)\"[^>]*fill=\"none\"")));
    ASSERT_TRUE(std::regex_search(page, number, std::regex("<text x=\"[0-9.]+\" y=\"([0-9.]+)\"[^>]*>141.9<")));
    constexpr double kHeightOfDigits = 9;
    EXPECT_GT(std::stod(number[1]) - kHeightOfDigits, std::stod(frame[1])) << height;
    EXPECT_THAT(page, HasSubstr("train_path=/"));
    EXPECT_THAT(page, HasSubstr("/more</text>"));
    EXPECT_EQ(count_of(page, std::string(60, 'b')) == 1, height == 600) << "what has room is whole";
    EXPECT_EQ(count_of(page, "..."), height == 600 ? 1U : 2U) << "the first would leave the page at its left";
  }
}

TEST(SvgPlot, UnequalNumbersAreABug) {
  LinePlot plot;
  plot.curves = {{.label = "c", .x = {1, 2}, .y = {1}}};
  EXPECT_THROW(svg(plot), InternalError);
  BarPlot bars;
  bars.series = {"one", "two"};
  bars.groups = {{"g", {1}}};
  EXPECT_THROW(svg(bars), InternalError);
}

TEST(SvgPlot, CellsHaveTheirNumbersAndBlueIsAboveZero) {
  const CellPlot plot{.title = "tropics",
                      .columns = {"6 h", "12 h", "24 h"},
                      .rows = {{"t2m & co", {80, -80, std::numeric_limits<double>::quiet_NaN()}}, {"z500", {1.4, 0, -20}}}};
  const std::string page = svg(plot);
  for (const char* word : {">tropics<", ">12 h<", ">t2m &amp; co<", ">80<", ">-80<", ">-<", ">1<", ">-20<"}) {
    EXPECT_THAT(page, HasSubstr(word));
  }
  const auto color = [](double share) {
    const image::Color at = image::color_at(image::ColorMap::Diverging, share);
    return cat("fill=\"rgb(", int{at.red}, ",", int{at.green}, ",", int{at.blue}, ")\"");
  };
  EXPECT_THAT(page, HasSubstr(color(0))) << "blue, and no deeper than the deepest";
  EXPECT_THAT(page, HasSubstr(color(1)));
  EXPECT_THROW(svg(CellPlot{.columns = {"a"}, .rows = {{"b", {1, 2}}}}), InternalError);
}

TEST(SvgPlot, SeveralStandSideBySide) {
  LinePlot wide = scaling_plot();
  wide.width = 500, wide.height = 600;
  const std::string page = svg_row({scaling_plot(), wide});
  EXPECT_EQ(count_of(page, "<svg "), 3U);
  EXPECT_EQ(count_of(page, "</svg>"), 3U);
  EXPECT_THAT(page, HasSubstr("width=\"1300\" height=\"600\""));
  EXPECT_THAT(page, HasSubstr("<svg x=\"800\""));
}

}  // namespace
}  // namespace welkin::observe
