// SPDX-License-Identifier: Apache-2.0
// Help texts: printed, or, for `welkin completion`, recorded as data (Application::recorded).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/application.h"
#include "config/help/help_text.h"
#include "config/help/option.h"

namespace welkin::apps {

// Width of every help text in columns.
inline constexpr size_t kHelpWidth = 100;

// "-h", "--help" or "--help=all".
bool asks_for_help(std::string_view word);

// Prints the help of a verb that takes a configuration.
void print_help(Application& application, const config::HelpPage& page, config::Help form);

// A form of a verb that needs a second word: the word, its summary, and further text.
struct Form {
  std::string_view word, summary;
};
void print_forms(Application& application, std::string_view program, const std::vector<Form>& forms, std::string_view more);

// Every verb of this build with its options, by asking each for its help.
config::ProgramHelp describe_program(Application& application);

}  // namespace welkin::apps
