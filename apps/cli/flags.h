// SPDX-License-Identifier: Apache-2.0
// Values of a verb's own flags (config::ExtraFlag), which a command line holds as text.
#pragma once

#include <cstdint>
#include <string>

#include "config/flags/command_line.h"

namespace welkin::apps {

// `otherwise` where the flag is absent. Else a number from `least` to `most`, or a ConfigError that names both.
int64_t whole_flag(const config::CommandLine& line, const std::string& name, int64_t otherwise, int64_t least = 1,
                   int64_t most = 1 << 20);
double number_flag(const config::CommandLine& line, const std::string& name, double otherwise, double least, double most);

// `otherwise` where the flag is absent or has no text.
std::string text_flag(const config::CommandLine& line, const std::string& name, const std::string& otherwise = "");

// Of a switch, or of a flag with a value: whether it is given and not "false".
bool has_flag(const config::CommandLine& line, const std::string& name);

}  // namespace welkin::apps
