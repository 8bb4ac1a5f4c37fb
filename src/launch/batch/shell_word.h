// SPDX-License-Identifier: Apache-2.0
// Words of a command line as a shell reads them back.
#pragma once

#include <string>
#include <vector>

namespace welkin::launch {

// The word for bash, in single quotes where it holds more than plain characters.
std::string shell_word(const std::string& word);

// The words, quoted where they need it, with a blank between.
std::string shell_line(const std::vector<std::string>& words);

// The value of a directive (#SBATCH, #BSUB, #PBS, #flux:); no shell reads such lines: in quotes where it holds blanks, quotes
// or #; one that is in quotes already stays. ConfigError where it holds both kinds of quotes.
std::string directive_value(const std::string& value);

}  // namespace welkin::launch
