// SPDX-License-Identifier: Apache-2.0
// Maps: where a grid lies, and outlines of land over its picture.
#include "observe/image/map_frame.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "observe/image/panels.h"

namespace welkin::observe::image {
namespace {

std::vector<double> even_places(double first, double step, int count) {
  std::vector<double> places;
  for (int i = 0; i < count; ++i) places.push_back(first + step * i);
  return places;
}

TEST(MapFrame, AGlobeHasItsEdgesBetweenCells) {
  const auto frame = map_frame(even_places(90, -10, 19), even_places(0, 10, 36));
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->north, 90);  // the pole's row ends there
  EXPECT_EQ(frame->south, -90);
  EXPECT_EQ(frame->west, -5);
  EXPECT_EQ(frame->east, 355);
}

TEST(MapFrame, OtherGridsAreNoMaps) {
  EXPECT_FALSE(map_frame(std::vector<double>{60, 50, 55}, even_places(0, 10, 36))) << "rows to and fro";
  EXPECT_FALSE(map_frame(std::vector<double>{60, 50, 50}, even_places(0, 10, 36))) << "a row twice";
  EXPECT_FALSE(map_frame(even_places(90, -10, 19), std::vector<double>{0, 10, 90})) << "uneven columns";
  EXPECT_FALSE(map_frame(even_places(90, -10, 19), even_places(0, 10, 40))) << "more than once around";
  EXPECT_FALSE(map_frame(even_places(90, -10, 19), std::vector<double>{0, std::nan(""), 20})) << "no number";
  EXPECT_FALSE(map_frame(even_places(90, -10, 19), std::vector<double>{0})) << "one column";
  EXPECT_FALSE(map_frame(even_places(500, -10, 19), even_places(0, 10, 36))) << "nowhere on earth";
}

TEST(MapFrame, SouthFirstAndWestwardsAreTurned) {
  const auto frame = map_frame(even_places(-40, 10, 3), even_places(20, -10, 4));
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->north, -15);
  EXPECT_EQ(frame->south, -45);
  EXPECT_EQ(frame->west, -15);
  EXPECT_EQ(frame->east, 25);
  const std::vector<float> values = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  EXPECT_EQ(in_map_order(*frame, values, 4), (std::vector<float>{11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}));
}

TEST(MapFrame, ARegionMayCrossTheDateLine) {
  for (const std::vector<double>& columns :
       {std::vector<double>{170, 175, 180, -175, -170}, std::vector<double>{170, 175, -180, -175, -170},
        std::vector<double>{170, 175, 180, 185, 190}}) {
    const auto frame = map_frame(even_places(20, -5, 4), columns);
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->west, 167.5);
    EXPECT_EQ(frame->east, 192.5);
    EXPECT_TRUE(frame->column_of.empty());
  }
  const auto greenwich = map_frame(even_places(20, -5, 4), std::vector<double>{350, 355, 0, 5});
  ASSERT_TRUE(greenwich);
  EXPECT_EQ(greenwich->west, 347.5);
  EXPECT_EQ(greenwich->east, 367.5);
}

TEST(MapFrame, UnevenRowsAreShownWhereTheyLie) {
  const auto frame = map_frame(std::vector<double>{60, 50, 10}, even_places(0, 10, 36));
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->north, 65);
  EXPECT_EQ(frame->south, -10);
  EXPECT_EQ(frame->row_of, (std::vector<int>{1, 2, 2})) << "at 52.5, 27.5 and 2.5 degrees";
}

// Pixels of a white picture that outlines have changed.
int inked(const MapFrame& frame, const Rect& where, const Rect& counted) {
  Raster raster(400, 220);
  draw_outlines(raster, where, frame);
  int count = 0;
  for (int y = counted.y; y < counted.bottom(); ++y) {
    for (int x = counted.x; x < counted.right(); ++x) count += raster.at(x, y) == kWhite ? 0 : 1;
  }
  return count;
}

TEST(MapFrame, OutlinesStayInsideAndWhereLandIs) {
  if (!has_outlines()) GTEST_SKIP() << "a build without outlines: tools/setup.sh installs them";
  const MapFrame globe{.north = 90, .south = -90, .west = 0, .east = 360};
  const Rect picture{20, 20, 360, 180};
  EXPECT_GT(inked(globe, picture, picture), 1000);
  EXPECT_EQ(inked(globe, picture, {0, 0, 400, 17}), 0) << "above it";
  EXPECT_EQ(inked(globe, picture, {0, 0, 17, 220}), 0) << "to its left";
  EXPECT_GT(inked(globe, picture, {20 + 110, 20 + 100, 50, 30}), 20) << "Australia";
  EXPECT_EQ(inked(globe, picture, {20 + 205, 20 + 115, 60, 20}), 0) << "the southern Pacific";
  EXPECT_GT(inked({.north = 90, .south = -90, .west = -180, .east = 180}, picture, {20 + 290, 20 + 100, 50, 30}), 20)
      << "Australia, with 0 in the middle";
}

TEST(MapFrame, APanelWithAMapHasDegreesBesideIt) {
  const std::vector<float> values(18 * 36, 1.0f);
  PanelFigure figure{.width = 500, .height = 400};
  figure.panels.push_back({.title = "t2m", .values = values, .rows = 18, .columns = 36});
  const Raster plain = draw_panels(figure);
  figure.panels[0].map = MapFrame{};
  const Raster map = draw_panels(figure);
  EXPECT_NE(std::vector<uint8_t>(plain.bytes().begin(), plain.bytes().end()),
            std::vector<uint8_t>(map.bytes().begin(), map.bytes().end()));
}

}  // namespace
}  // namespace welkin::observe::image
