// SPDX-License-Identifier: Apache-2.0
#include "plan/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace welkin::plan {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

std::string text_of(double value, const std::string& unit, int decimals) {
  return figures_text({{.title = "work", .figures = {{"it", value, unit, decimals}}}});
}

TEST(Figures, SmallNumbersStandInASmallerUnit) {
  EXPECT_THAT(text_of(27.2, "GFLOP", 1), ContainsRegex("it +27\\.2 +GFLOP"));
  EXPECT_THAT(text_of(1.04, "GFLOP", 1), ContainsRegex("it +1\\.0 +GFLOP"));
  EXPECT_THAT(text_of(0.0123, "GFLOP", 1), ContainsRegex("it +12\\.3 +MFLOP"));
  EXPECT_THAT(text_of(0.02, "TFLOP", 2), ContainsRegex("it +20\\.0 +GFLOP"));
  EXPECT_THAT(text_of(12e-15, "PFLOP", 2), ContainsRegex("it +12 +FLOP"));
  EXPECT_THAT(text_of(0.5, "GiB", 4), ContainsRegex("it +0\\.5000 +GiB"));
  EXPECT_THAT(text_of(3.0 / 1024 / 1024, "GiB", 4), ContainsRegex("it +3\\.0 +KiB"));
  EXPECT_THAT(text_of(0, "GFLOP", 1), ContainsRegex("it +0\\.0 +GFLOP"));
  EXPECT_THAT(text_of(0.01, "s", 1), ContainsRegex("it +0\\.0 +s"));
}

TEST(Figures, JsonKeepsTheUnit) {
  const auto json = figures_json({{.title = "work", .figures = {{"it", 0.0123, "GFLOP", 1}}}});
  EXPECT_THAT(json, ::testing::AllOf(HasSubstr("0.0123"), HasSubstr("\"GFLOP\"")));
}

}  // namespace
}  // namespace welkin::plan
