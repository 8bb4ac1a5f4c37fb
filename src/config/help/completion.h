// SPDX-License-Identifier: Apache-2.0
// Scripts that complete `welkin` in a shell. They hold all that they need: no TAB starts the program.
#pragma once

#include <string>

#include "config/help/option.h"

namespace welkin::config {

std::string bash_completion(const ProgramHelp& program);
std::string zsh_completion(const ProgramHelp& program);

}  // namespace welkin::config
