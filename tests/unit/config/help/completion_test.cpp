// SPDX-License-Identifier: Apache-2.0
// The tables of the completion scripts. That shells complete with them is for tests/e2e/command_line/completion_test.py.
#include "config/help/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/help/shell_commands.h"
#include "small_program.h"

namespace welkin::config {
namespace {

using test::small_program;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

const ShellCommand& command(const std::vector<ShellCommand>& commands, std::string_view path) {
  for (const ShellCommand& row : commands) {
    if (row.path == path) return row;
  }
  throw std::runtime_error("no such command");
}

TEST(ShellCommands, VerbsOfTwoWordsAreFoundWordByWord) {
  const auto commands = shell_commands(small_program());
  EXPECT_THAT(command(commands, "welkin").words,
              ElementsAre(Pair("train", "it's training"), Pair("data", "inspect"), Pair("launch", "start")));
  EXPECT_THAT(command(commands, "welkin data").words, ElementsAre(Pair("inspect", "what is in a file")));
  EXPECT_TRUE(command(commands, "welkin data inspect").takes_paths);
}

TEST(ShellCommands, FormsAreCommandsAndThoseWithoutDashesAreOffered) {
  const auto commands = shell_commands(small_program());
  EXPECT_EQ(command(commands, "welkin data inspect --deep").path, "welkin data inspect --deep");
  EXPECT_THAT(command(commands, "welkin data inspect").words, ElementsAre(Pair("box", "a box")));
}

TEST(ShellCommands, OptionsOfEqualValuesShareABranch) {
  const std::vector<Option> options{{.name = "--a", .kind = ValueKind::Path},
                                    {.name = "--b", .short_name = "-b", .kind = ValueKind::None},
                                    {.name = "--c", .kind = ValueKind::Path}};
  EXPECT_EQ(option_cases(options, "  "), "  '--a'|'--c') kind=path ;;\n  '--b'|'-b') kind=none ;;\n");
}

TEST(ShellCommands, WordsThatAShellWouldTakeApartAreLeftOut) {
  EXPECT_EQ(joined_words({"l2", "it's", "a b", "$(rm)", "", "x:y"}), "l2 x:y");
  EXPECT_EQ(quoted("it's"), "'it'\\''s'");
}

TEST(Completion, BashHasVerbsFlagsValuesAndKeys) {
  const std::string script = bash_completion(small_program());
  EXPECT_THAT(script, StartsWith("# Completion of welkin 1.2 in bash, printed by `welkin completion bash`.\n"));
  EXPECT_THAT(script, AllOf(HasSubstr("_welkin_configuration=(--config --resume)\n"), HasSubstr("_welkin_keys=(lr loss)\n"),
                            HasSubstr("_welkin_negations=(--no-resume)\n")));
  EXPECT_THAT(script, HasSubstr("'welkin train') flags=(\"${_welkin_configuration[@]}\" )"));
  EXPECT_THAT(script, HasSubstr("'welkin data inspect') flags=(--bench -b --type) negations=() bare=(box) paths=1 ;;"));
  EXPECT_THAT(script, HasSubstr("'welkin data inspect --type') kind=choice values=(x y) optional=1 ;;"));
  EXPECT_THAT(script, AllOf(HasSubstr("'--config') kind=preset ;;"), HasSubstr("'loss') kind=choice values=(l2) ;;")));
}

TEST(Completion, ZshSaysWhatEachOfferIs) {
  const std::string script = zsh_completion(small_program());
  EXPECT_THAT(script, StartsWith("#compdef welkin\n"));
  EXPECT_THAT(script, HasSubstr("'train:it'\\''s training'"));
  EXPECT_THAT(script, HasSubstr("'welkin data inspect') flags=('--bench:measure: how fast' '-b:measure: how fast'"));
  EXPECT_THAT(script, HasSubstr("'welkin launch') launches=1 ;;"));
}

}  // namespace
}  // namespace welkin::config
