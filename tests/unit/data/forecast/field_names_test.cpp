// SPDX-License-Identifier: Apache-2.0
#include "data/forecast/field_names.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace welkin::data {
namespace {

bool is_name_of(const std::string& name, const std::string& channel) {
  return std::ranges::count(names_of_channel(channel), name) > 0;
}

TEST(FieldNames, AreThoseOfALevelAndOfTheSurface) {
  EXPECT_TRUE(is_name_of("geopotential@500", "z500"));
  EXPECT_TRUE(is_name_of("t2m", "2m_temperature"));
  EXPECT_TRUE(is_name_of("10m_u_component_of_wind", "u10"));
}

// Wind at 10 m and at 10 hPa have one unit: nothing but the name tells them apart.
TEST(FieldNames, OfAHeightAreNotThoseOfALevel) {
  for (const char* channel : {"u10", "v10", "u100", "v100", "10m_u_component_of_wind"}) {
    for (const std::string& name : names_of_channel(channel))
      EXPECT_EQ(name.find('@'), std::string::npos) << channel << ": " << name;
  }
  EXPECT_FALSE(is_name_of("100m_u_component_of_wind", "u100"));
}

}  // namespace
}  // namespace welkin::data
