// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "number_close.h"
#include "observe/image/panels.h"
#include "observe/image/plot.h"
#include "observe/image/ticks.h"

namespace welkin::observe::image {
namespace {

using testing::ElementsAre;

std::vector<std::string> labels(const std::vector<Tick>& ticks) {
  std::vector<std::string> all;
  for (const Tick& tick : ticks) all.push_back(tick.label);
  return all;
}

int64_t pixels_of(const Raster& raster, Color color) {
  int64_t count = 0;
  for (int y = 0; y < raster.height(); ++y) {
    for (int x = 0; x < raster.width(); ++x) count += raster.at(x, y) == color ? 1 : 0;
  }
  return count;
}

double reddish_pixels(const Raster& raster) {
  double count = 0;
  for (int y = 0; y < raster.height(); ++y) {
    for (int x = 0; x < raster.width(); ++x) count += raster.at(x, y).red > 200 && raster.at(x, y).green < 100 ? 1 : 0;
  }
  return count;
}

TEST(Ticks, AreRound) {
  EXPECT_THAT(labels(linear_ticks(0, 1, 6)), ElementsAre("0.0", "0.2", "0.4", "0.6", "0.8", "1.0"));
  EXPECT_THAT(labels(linear_ticks(-0.25, 0.25, 3)), ElementsAre("-0.2", "0.0", "0.2"));
  EXPECT_THAT(labels(linear_ticks(0, 10240, 4)), ElementsAre("0", "5000", "10000"));
  EXPECT_THAT(labels(linear_ticks(0, 2e-4, 3)), ElementsAre("0", "1e-4", "2e-4"));
  EXPECT_THAT(labels(linear_ticks(273.1, 273.9, 5)), ElementsAre("273.2", "273.4", "273.6", "273.8"));
  EXPECT_THAT(labels(log_ticks(0.004, 0.12, 6)), ElementsAre("0.005", "0.01", "0.02", "0.05", "0.1"));
  EXPECT_THAT(labels(log_ticks(1e-6, 1, 4)), ElementsAre("1e-6", "", "1e-4", "", "1e-2", "", "1e0"));
  EXPECT_TRUE(linear_ticks(1, 1, 5).empty());
  EXPECT_TRUE(linear_ticks(0, 1e-320, 5).empty());
  EXPECT_TRUE(linear_ticks(1e300, 1e300 * (1 + 1e-15), 5).empty());
  EXPECT_TRUE(log_ticks(-1, 1, 5).empty());
  EXPECT_EQ(short_number(1.5e-7), "1.5e-7");
}

// 2 x 4 cells whose colours are known: the first row must be on top, each panel has its own scale.
TEST(Panels, RowZeroIsOnTopAndEachPanelIsScaledByItself) {
  const std::vector<float> small{0, 0, 0, 0, 1, 1, 1, 1};
  const std::vector<float> large{0, 0, 0, 0, 100, 100, 100, 100};
  const Raster raster = draw_panels({.panels = {{.title = "ERA5 target", .values = small, .rows = 2, .columns = 4},
                                                {.title = "ViT prediction", .values = large, .rows = 2, .columns = 4}}});
  EXPECT_EQ(raster.width(), 1200);
  EXPECT_EQ(raster.height(), 600);
  for (const int x : {300, 900}) {
    EXPECT_EQ(raster.at(x, 220), color_at(ColorMap::Turbo, 0));
    EXPECT_EQ(raster.at(x, 360), color_at(ColorMap::Turbo, 1));
  }
}

TEST(Panels, AveragesWhatIsFinerThanAPixelAndShowsGaps) {
  std::vector<float> checkers(512 * 512);
  for (size_t i = 0; i < checkers.size(); ++i) checkers[i] = static_cast<float>((i + i / 512) % 2);
  checkers[0] = std::numeric_limits<float>::quiet_NaN();
  const Raster fine = draw_panels(
      {.width = 346, .height = 322, .panels = {{.values = checkers, .rows = 512, .columns = 512, .low = 0, .high = 1}}});
  int extremes = 0;
  for (int x = 60; x < 160; ++x)
    extremes += fine.at(x, 170) == color_at(ColorMap::Turbo, 0) || fine.at(x, 170) == color_at(ColorMap::Turbo, 1);
  EXPECT_LT(extremes, 30) << "single cells show where means belong";
  const std::vector<float> missing{0, 1, std::nanf(""), 1};
  EXPECT_GT(pixels_of(draw_panels({.panels = {{.values = missing, .rows = 2, .columns = 2}}}), kMissingGray), 10000);
}

TEST(Panels, WrongSizesAreBugs) {
  const std::vector<float> values(6);
  EXPECT_THROW(draw_panels({.panels = {{.values = values, .rows = 2, .columns = 4}}}), InternalError);
  EXPECT_THROW(draw_panels({}), InternalError);
}

TEST(LinePlot, DrawsInsideItsFrameAndLeavesGaps) {
  const double nan = std::nan("");
  const Color red{255, 0, 0};
  const Raster line = draw_lines({}, {{.x = {0, 1, 2, 3}, .y = {1, 1, 1, 1}, .color = red}});
  const Raster gap = draw_lines({}, {{.x = {0, 1, 2, 3}, .y = {1, 1, nan, 1}, .color = red}});
  EXPECT_TRUE(tests::within(reddish_pixels(gap) / reddish_pixels(line), 1.0 / 3, {0.03, "the round ends of the line"}));
  const Raster cut = draw_lines({.y_low = 0, .y_high = 1}, {{.x = {0, 1}, .y = {-1e90, 1e90}, .color = red}});
  for (int x = 0; x < cut.width(); ++x) EXPECT_NE(cut.at(x, 2), red);
}

TEST(LinePlot, SurvivesOddNumbers) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const AxisScale scale : {AxisScale::Linear, AxisScale::Log}) {
    const PlotStyle style{.title = "odd", .y_scale = scale};
    EXPECT_EQ(draw_lines(style, {{.label = "a", .x = {0, 1, inf}, .y = {inf, -inf, 1}}}).width(), 900);
    EXPECT_EQ(draw_lines(style, {{.x = {1e308, -1e308, 0}, .y = {1e308, 1e-308, 5}}}).width(), 900);
    EXPECT_EQ(draw_lines(style, {}).width(), 900);
  }
  EXPECT_THROW(draw_lines({}, {{.x = {1}, .y = {}}}), InternalError);
}

TEST(LinePlot, LongSeriesKeepTheirExtremes) {
  Series series{.color = Color{255, 0, 0}};
  for (int i = 0; i < 100000; ++i) {
    series.x.push_back(i);
    series.y.push_back(i == 50000 ? 10 : i == 50003 ? -10 : 0);
  }
  const Raster raster = draw_lines({.y_low = -10, .y_high = 10}, {series});
  int highest = raster.height(), lowest = 0;
  for (int y = 0; y < raster.height(); ++y) {
    for (int x = 0; x < raster.width(); ++x) {
      if (raster.at(x, y) == Color{255, 0, 0}) highest = std::min(highest, y), lowest = std::max(lowest, y);
    }
  }
  EXPECT_GT(lowest - highest, 380) << "the spikes up and down";
}

TEST(BarPlot, BarsStandOnZero) {
  const Raster raster = draw_bars({.width = 400, .height = 300}, {{"up", 2}, {"down", -1}, {"none", std::nan("")}});
  const Color bar{0, 114, 178};
  int up = 0, down = 0;
  for (int y = 0; y < 300; ++y) {
    up += raster.at(110, y) == bar ? 1 : 0;
    down += raster.at(220, y) == bar ? 1 : 0;
  }
  EXPECT_TRUE(tests::within(up, 2 * down, {2, "pixels at the two ends"}));
  EXPECT_GT(down, 30);
}

}  // namespace
}  // namespace welkin::observe::image
