// SPDX-License-Identifier: Apache-2.0
// What --help says: printed, or, for `welkin completion`, recorded as data (Application::recorded).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/application.h"
#include "config/help/help_text.h"
#include "config/help/option.h"

namespace welkin::apps {

// Columns of every help text.
inline constexpr size_t kHelpWidth = 100;

// "-h", "--help" or "--help=all".
bool asks_for_help(std::string_view word);

// Of a verb that takes a configuration.
void print_help(Application& application, const config::HelpPage& page, config::Help form);

// Of a verb that is nothing without a second word: its forms, and what else can be said.
struct Form {
  std::string_view word, summary;
};
void print_forms(Application& application, std::string_view program, const std::vector<Form>& forms, std::string_view more);

// Every verb of this build with its options, by asking each for its help.
config::ProgramHelp describe_program(Application& application);

}  // namespace welkin::apps
