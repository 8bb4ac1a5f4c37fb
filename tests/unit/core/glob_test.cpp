// SPDX-License-Identifier: Apache-2.0
#include "core/glob.h"

#include <gtest/gtest.h>

namespace welkin {
namespace {

using Parts = std::vector<std::string>;

TEST(Glob, MatchesTheWholeName) {
  EXPECT_TRUE(matches_glob("blocks.0.*", "blocks.0.attn.q.weight"));
  EXPECT_FALSE(matches_glob("blocks.0.*", "blocks.01.attn.q.weight"));
  EXPECT_FALSE(matches_glob("blocks.0", "blocks.0.norm.weight"));
  EXPECT_TRUE(matches_glob("*.bias", "head.bias"));
  EXPECT_FALSE(matches_glob("*.bias", "head.bias_scale"));
  EXPECT_TRUE(matches_glob("blocks.?.norm*.weight", "blocks.3.norm2.weight"));
  EXPECT_FALSE(matches_glob("blocks.?.norm*.weight", "blocks.13.norm2.weight"));
  EXPECT_TRUE(matches_glob("*", ""));
  EXPECT_TRUE(matches_glob("", ""));
  EXPECT_FALSE(matches_glob("", "a"));
  EXPECT_FALSE(matches_glob("?", ""));
  EXPECT_TRUE(matches_glob("*a*ab", "aaab"));
}

TEST(Glob, GivesWhatTheWildcardsStandFor) {
  EXPECT_EQ(glob_match("encoder.*.fc?.weight", "encoder.7.mlp.fc2.weight"), (Parts{"7.mlp", "2"}));
  EXPECT_EQ(glob_match("a*b*", "axbyb"), (Parts{"x", "yb"}));  // the first as short as can be
  EXPECT_FALSE(glob_match("encoder.*", "decoder.1"));
  EXPECT_EQ(glob_match("same", "same"), Parts());
}

TEST(Glob, FillsAPatternWithThem) {
  EXPECT_EQ(glob_filled("blocks.*.mlp.?", {"7", "2"}), "blocks.7.mlp.2");
  EXPECT_EQ(glob_filled("blocks.*.*", {"7"}), "blocks.7.*");
  EXPECT_EQ(glob_filled("head", {"7"}), "head");
}

TEST(Glob, TakesNoTimeForManyStars) {
  std::string pattern;
  for (int i = 0; i < 60; ++i) pattern += "*a";
  EXPECT_FALSE(matches_glob(pattern + "b", std::string(4000, 'a')));
}

}  // namespace
}  // namespace welkin
