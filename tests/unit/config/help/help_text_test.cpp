// SPDX-License-Identifier: Apache-2.0
// What --help of a verb with a configuration prints: the short form on one screen, the full one with every flag.
#include "config/help/help_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>
#include <string>

#include "config/flags/flag.h"

namespace welkin::config {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const HelpPage kPage{
    .program = "welkin train",
    .extra = {{"checkpoint", "DIR", "what to load"},
              {"rare", "", "what few need", Listed::InFull},
              {"long", "N",
               "a first clause that is kept (with: a colon inside); and a second one that is left out of the short "
               "form, as it does not fit"}},
    .common = Common::Training};

size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

// With blanks instead of the line breaks within a text.
std::string flowing(const std::string& text) { return std::regex_replace(text, std::regex("\n {9,}"), " "); }

TEST(HelpText, TheFullFormNamesEveryFlagWithDefaultAndUnit) {
  const std::string help = help_text(kPage, Help::All);
  for (const Flag& flag : all_flags({})) EXPECT_THAT(help, HasSubstr("\n  --" + flag.name));
  EXPECT_THAT(help, AllOf(HasSubstr("\n  --checkpoint DIR"), HasSubstr("\n  --rare"), HasSubstr("and a second")));
  EXPECT_THAT(flowing(help),
              AllOf(HasSubstr("(default: 25 MB)"), HasSubstr("{sc21, sc22}"), HasSubstr("\nSeveral processes:\n")));
  EXPECT_LE(longest_line(help), 100u);
}

TEST(HelpText, TheShortFormFitsAScreenAndSaysHowToSeeEverything) {
  const std::string help = help_text(kPage, Help::Common);
  EXPECT_LE(std::count(help.begin(), help.end(), '\n'), 50);
  EXPECT_LE(longest_line(help), 100u);
  EXPECT_THAT(help, AllOf(StartsWith("Usage: welkin train --yaml_config FILE"), EndsWith("\n--help=all shows everything.\n")));
}

TEST(HelpText, TheShortFormNamesCommonKeysWithAndWithoutAFlag) {
  const std::string help = help_text(kPage, Help::Common);
  EXPECT_THAT(help,
              AllOf(HasSubstr("\n  --local_batch_size N "), HasSubstr("\n  --set lr=X "), HasSubstr("\n  --checkpoint DIR ")));
  EXPECT_THAT(help, AllOf(Not(HasSubstr("--cudnn_benchmark")), Not(HasSubstr("--rare")), Not(HasSubstr("--check_data"))));
}

TEST(HelpText, TheShortFormKeepsTheFirstClauseOfALongSentence) {
  const std::string help = help_text(kPage, Help::Common);
  EXPECT_THAT(help, HasSubstr("a first clause that is kept (with: a colon inside)\n"));
  EXPECT_THAT(help, Not(HasSubstr("and a second")));
}

TEST(HelpText, AVerbThatDoesNotTrainNamesNoKeysOfTraining) {
  HelpPage page = kPage;
  page.common = Common::Steps;
  EXPECT_THAT(help_text(page, Help::Common), AllOf(HasSubstr("--tensor_parallel"), Not(HasSubstr("--num_epochs"))));
  page.common = Common::EveryVerb;
  EXPECT_THAT(help_text(page, Help::Common), AllOf(HasSubstr("--device"), Not(HasSubstr("--tensor_parallel"))));
}

TEST(HelpText, EveryUsageHasALine) {
  const HelpPage page{.program = "welkin evaluate", .usage = {"RUN_FOLDER [flags]", "--yaml_config FILE"}};
  EXPECT_THAT(help_text(page, Help::Common),
              StartsWith("Usage: welkin evaluate RUN_FOLDER [flags]\n       welkin evaluate --yaml_config FILE\n"));
}

}  // namespace
}  // namespace welkin::config
