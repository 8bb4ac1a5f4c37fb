// SPDX-License-Identifier: Apache-2.0
// Text of a file for a terminal: what is in it is no instruction to the terminal, and no line of ours.
#pragma once

#include <string>
#include <string_view>

namespace welkin {

// At most 200 characters of ASCII on one line; others are '?', a line's end is a blank.
std::string printable(std::string_view text);

// Whole lines: control characters are '?', all else stays.
std::string printable_lines(std::string_view text);

}  // namespace welkin
