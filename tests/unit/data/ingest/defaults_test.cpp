// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/defaults.h"

#include <gtest/gtest.h>

namespace welkin::data::ingest::tests {
namespace {

TEST(DefaultsTest, APatchLeavesSomeHundredTokensAndFewPointsOut) {
  EXPECT_EQ(choose_patch(33, 49), 3);      // 33 x 48, 176 tokens
  EXPECT_EQ(choose_patch(721, 1440), 30);  // one row is left out
  EXPECT_EQ(choose_patch(64, 128), 4);
  EXPECT_EQ(choose_patch(5, 5), 1);
  EXPECT_EQ(choose_patch(1, 1), 1);
}

}  // namespace
}  // namespace welkin::data::ingest::tests
