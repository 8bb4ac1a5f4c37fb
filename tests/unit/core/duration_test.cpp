// SPDX-License-Identifier: Apache-2.0
#include "core/duration.h"

#include <gtest/gtest.h>

namespace welkin {
namespace {

TEST(Duration, ReadsAllFormsOfSbatch) {
  EXPECT_EQ(parse_duration_s("90"), 90 * 60);
  EXPECT_EQ(parse_duration_s("1:30"), 90);
  EXPECT_EQ(parse_duration_s("0:05"), 5);
  EXPECT_EQ(parse_duration_s("2:00:01"), 7201);
  EXPECT_EQ(parse_duration_s("30:00:00"), 30 * 3600);
  EXPECT_EQ(parse_duration_s("1-2"), 26 * 3600);
  EXPECT_EQ(parse_duration_s("1-00:30"), 86400 + 1800);
  EXPECT_EQ(parse_duration_s("2-01:02:03"), 2 * 86400 + 3723);
}

TEST(Duration, RefusesTheRest) {
  for (const char* text :
       {"", "-", "1-", "-1", ":", "1:", ":1", "1:2:3:4", "1-2:3:4:5", "UNLIMITED", "1.5", " 1", "1 ", "1h", "9999999999"}) {
    EXPECT_FALSE(parse_duration_s(text)) << text;
  }
}

}  // namespace
}  // namespace welkin
