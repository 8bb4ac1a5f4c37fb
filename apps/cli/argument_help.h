// SPDX-License-Identifier: Apache-2.0
// Help and error texts of a CLI::App without CLI11's own notation.
#pragma once

#include <string>
#include <vector>

#include "config/help/option.h"
#include "launch/launch_command.h"

namespace CLI {
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace welkin::apps {

// An option as a row: "--format" with its choices, "-n" with "N".
config::Option described_option(const CLI::Option& option);
// The same for the verbs that the launcher runs before torch is loaded.
config::Option described_option(const launch::LaunchOption& option);

// The choices of an argument, empty where it may be anything: {"bash", "zsh", "man"}.
std::vector<std::string> choices_of(const CLI::Option& option);

// Usage, description, arguments and options; lines of at most kHelpWidth columns.
std::string arguments_help(const CLI::App& app);

// "--format: \"xyz\" is none of pt, safetensors".
std::string argument_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace welkin::apps
