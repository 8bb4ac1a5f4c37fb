// SPDX-License-Identifier: Apache-2.0
// The text of --help of a verb that takes a configuration: the options that most runs need, on one screen, or all of them.
#pragma once

#include <string>
#include <vector>

#include "config/flags/command_line.h"
#include "config/schema/key.h"

namespace welkin::config {

struct HelpPage {
  std::string program;  // "welkin train"
  // The words after it on the command line, one line each.
  std::vector<std::string> usage = {"--yaml_config FILE [--config PRESET] [flags]"};
  std::vector<ExtraFlag> extra = {};  // the verb's own
  Common common = Common::EveryVerb;  // the sort of keys in the short form
};

// Usage, the flags by group with type, default and unit, and where to read on. Lines of at most 100 columns.
std::string help_text(const HelpPage& page, Help form);

}  // namespace welkin::config
