// SPDX-License-Identifier: Apache-2.0
#include "config/schema/checkpointing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace welkin::config {
namespace {

using ::testing::HasSubstr;

std::string problem_of(const std::string& text) {
  std::string problem;
  EXPECT_FALSE(parse_checkpointing(text, problem)) << text;
  return problem;
}

TEST(Checkpointing, ReadsBackWhatItWrites) {
  for (const char* text : {"none", "mlp", "attention", "blocks", "pattern:blocks\\.[0-3]", "budget:1.5"}) {
    std::string problem;
    const auto value = parse_checkpointing(text, problem);
    ASSERT_TRUE(value) << text << " " << problem;
    EXPECT_EQ(text_of(*value), text);
  }
}

TEST(Checkpointing, SaysWhatItCannotRead) {
  EXPECT_THAT(problem_of("pattern"), HasSubstr("is none of none, mlp, attention, blocks, pattern:REGEX, budget:GIB"));
  EXPECT_THAT(problem_of("budget"), HasSubstr("is none of"));
  for (const char* budget : {"budget:", "budget:0", "budget:-1", "budget:inf", "budget:nan", "budget:2GiB"}) {
    EXPECT_THAT(problem_of(budget), HasSubstr("wants budget:GIB with a number above 0")) << budget;
  }
  for (const char* pattern : {"pattern:(", "pattern:[a", "pattern:*a", "pattern:(a)\\1"}) {
    EXPECT_THAT(problem_of(pattern), HasSubstr("wants a POSIX extended regular expression")) << pattern;
  }
}

TEST(Checkpointing, RefusesExpressionsThatTakeLong) {
  EXPECT_THAT(problem_of("pattern:"), HasSubstr("wants pattern:REGEX with 1 to 200 characters, has 0"));
  EXPECT_THAT(problem_of("pattern:" + std::string(100000, '(')), HasSubstr("has 100000"));
  EXPECT_THAT(problem_of("pattern:(a{1000}){1000}"), HasSubstr("without counts in braces"));
}

// A backtracking matcher takes 2^60 steps here.
TEST(Checkpointing, MatchesHostileExpressionsInTime) {
  const auto begin = std::chrono::steady_clock::now();
  for (const char* text : {"pattern:(a+)+", "pattern:(a|a)*b", "pattern:((a*)*)*c", "pattern:(a|b|ab)*c"}) {
    std::string problem;
    const auto value = parse_checkpointing(text, problem);
    ASSERT_TRUE(value) << problem;
    EXPECT_FALSE(matches_regex(value->pattern, std::string(60, 'a') + "!")) << text;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(Checkpointing, MatchesWholeNames) {
  EXPECT_TRUE(matches_regex("blocks\\.1", "blocks.1"));
  EXPECT_FALSE(matches_regex("blocks\\.1", "blocks.10"));
  EXPECT_FALSE(matches_regex("blocks", "blocks.1"));
  EXPECT_TRUE(matches_regex("blocks\\..*\\.(attn|mlp)", "blocks.3.mlp"));
}

}  // namespace
}  // namespace welkin::config
