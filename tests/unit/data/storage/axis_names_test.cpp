// SPDX-License-Identifier: Apache-2.0
// One table of the names of axes: each name has one meaning among those that occur together.
#include "data/storage/axis_names.h"

#include <gmock/gmock.h>

namespace welkin::data::tests {
namespace {

using ::testing::ElementsAre;

TEST(AxisNames, EveryNameIsKnownWithoutItsCase) {
  for (const AxisNames& row : kAxisNames) {
    for (const std::string_view name : axis_names(row.kind)) {
      EXPECT_TRUE(is_axis(row.kind, name)) << name;
      std::string upper(name);
      for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      EXPECT_TRUE(is_axis(row.kind, upper)) << upper;
    }
    EXPECT_FALSE(is_axis(row.kind, "")) << static_cast<int>(row.kind);
    EXPECT_FALSE(is_axis(row.kind, "rows")) << static_cast<int>(row.kind);
  }
}

// Axes of a box and levels share words with others ("height", "y"); they never stand beside them.
TEST(AxisNames, NoNameOfFieldsHasTwoMeanings) {
  constexpr std::array kTogether{AxisKind::Time,     AxisKind::Lead,  AxisKind::Member,   AxisKind::Channel,
                                 AxisKind::Pressure, AxisKind::Level, AxisKind::Latitude, AxisKind::Longitude};
  for (const AxisKind kind : kTogether) {
    for (const std::string_view name : axis_names(kind)) {
      EXPECT_EQ(std::ranges::count_if(kTogether, [&](AxisKind other) { return is_axis(other, name); }), 1) << name;
    }
  }
}

TEST(AxisNames, ARowOfAnyKindIsNoArrayOfLatitudes) {
  EXPECT_THAT(array_names(AxisKind::Latitude), ElementsAre("latitude", "lat", "nav_lat", "latitudes", "lats", "xlat"));
  EXPECT_TRUE(is_axis(AxisKind::Latitude, "y"));
  EXPECT_FALSE(is_among(array_names(AxisKind::Latitude), "y"));
}

TEST(AxisNames, ChannelsOfOneArrayAreChannels) {
  EXPECT_TRUE(is_channel_axis("static_channel"));
  EXPECT_TRUE(is_channel_axis("Band"));
  EXPECT_FALSE(is_channel_axis("depth"));
}

}  // namespace
}  // namespace welkin::data::tests
