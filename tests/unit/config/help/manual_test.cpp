// SPDX-License-Identifier: Apache-2.0
// The manual page as roff. That roff accepts it is for tests/e2e/command_line/manual_test.py.
#include "config/help/manual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "small_program.h"

namespace welkin::config {
namespace {

using test::small_program;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(Manual, NamesVerbsWithArgumentsAndOptions) {
  const std::string page = manual(small_program());
  EXPECT_THAT(page, StartsWith(".TH WELKIN 1 \"\" \"welkin 1.2\""));
  EXPECT_THAT(page, HasSubstr(".SS \"welkin data inspect FILE...\"\nwhat is in a file.\n"));
  EXPECT_THAT(page, HasSubstr(".BI \"\\-b, \\-\\-bench\" \"\"\nmeasure: how fast\n"));
  EXPECT_THAT(page, HasSubstr(".SS \"welkin train\"\nit's training.\nTakes the options of a configuration too.\n"));
}

TEST(Manual, OptionsOfAConfigurationStandOnceByGroup) {
  const std::string page = manual(small_program());
  EXPECT_THAT(page, AllOf(HasSubstr(".SS \"Which\"\n.TP\n.BI \"\\-\\-config\" \" PRESET\"\n"), HasSubstr(".SS \"Training\"\n")));
  EXPECT_EQ(page.find("\\-\\-resume"), page.rfind("\\-\\-resume"));
}

TEST(Manual, TextIsNoRequestToRoff) {
  const std::string page = manual(small_program());
  EXPECT_THAT(page, AllOf(HasSubstr(".BI \"\\-\\-type\" \"[=x|y]\"\n\\&.of what \\e kind\n"), Not(HasSubstr("\n.of what"))));
}

}  // namespace
}  // namespace welkin::config
