// SPDX-License-Identifier: Apache-2.0
// The program's command line in the form that both shells' scripts need: one row per command ("welkin data inspect", "welkin
// bench --tiles"), and the options with equal completions together.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/help/option.h"

namespace welkin::config {

struct ShellCommand {
  std::string path;
  std::vector<Option> options = {};  // without those of a configuration
  bool takes_configuration = false;
  bool starts_verb = false;
  bool takes_paths = false;
  std::vector<std::pair<std::string, std::string>> words = {};  // words that may follow it, and their meanings
};

// The program itself first, then its verbs, the first words of those of two ("welkin data"), and their forms.
std::vector<ShellCommand> shell_commands(const ProgramHelp& program);

// Rows of a `case` over "COMMAND FLAG" (all commands) or "FLAG" (the configuration's), options with equal values in one row:
//     'welkin bench --plot'|'welkin report --json') kind=path ;;
std::string option_cases(const std::vector<ShellCommand>& commands, std::string_view indent);
std::string option_cases(const std::vector<Option>& options, std::string_view indent);

std::string quoted(std::string_view text);                        // 'it'\''s', for both shells
std::string joined_words(const std::vector<std::string>& words);  // by blanks, without those that a shell would split

}  // namespace welkin::config
