// SPDX-License-Identifier: Apache-2.0
// Reads the values of a verb's own flags (config::ExtraFlag), which a command line holds as text.
#pragma once

#include <cstdint>
#include <string>

#include "config/flags/command_line.h"

namespace welkin::apps {

// A number from `least` to `most`, or a ConfigError that names both. Returns `otherwise` where the flag is absent.
int64_t whole_flag(const config::CommandLine& line, const std::string& name, int64_t otherwise, int64_t least = 1,
                   int64_t most = 1 << 20);
double number_flag(const config::CommandLine& line, const std::string& name, double otherwise, double least, double most);

// Returns `otherwise` where the flag is absent or empty.
std::string text_flag(const config::CommandLine& line, const std::string& name, const std::string& otherwise = "");

// True if a switch, or a flag with a value, is given and not "false".
bool has_flag(const config::CommandLine& line, const std::string& name);

}  // namespace welkin::apps
