// SPDX-License-Identifier: Apache-2.0
#include "parallel/shard/split.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace welkin::parallel {
namespace {

using Sizes = std::vector<int64_t>;

TEST(Split, BalancedDiffersByAtMostOne) {
  EXPECT_EQ(balanced_split(10, 6), (Sizes{2, 2, 2, 2, 1, 1}));
  EXPECT_EQ(balanced_split(4050, 4), (Sizes{1013, 1013, 1012, 1012}));
  EXPECT_EQ(balanced_split(35, 2), (Sizes{18, 17}));
  EXPECT_EQ(balanced_split(7, 7), Sizes(7, 1));
}

TEST(Split, TutorialRule) {
  EXPECT_EQ(tutorial_split(4050, 8), (Sizes{507, 507, 507, 507, 507, 507, 507, 501}));
  EXPECT_EQ(tutorial_split(10, 6), (Sizes{1, 1, 1, 1, 1, 5}));
  EXPECT_EQ(tutorial_split(5, 4), (Sizes{1, 1, 1, 2}));
}

TEST(Split, Offsets) {
  EXPECT_EQ(split_offset({18, 17}, 0), 0);
  EXPECT_EQ(split_offset({18, 17}, 1), 18);
}

TEST(Split, RefusesEmptyParts) {
  EXPECT_THROW(balanced_split(3, 4), ConfigError);
  EXPECT_THROW(tutorial_split(3, 0), ConfigError);
  try {
    balanced_split(3, 4);
  } catch (const ConfigError& error) {
    EXPECT_STREQ(
        error.what(),
        "[parallel] a length cannot be split without empty parts: length=3, parts=4. Use at most as many ranks along this "
        "axis as there are elements.");
  }
}

}  // namespace
}  // namespace welkin::parallel
