// SPDX-License-Identifier: Apache-2.0
// Text of a file for a terminal, so that it cannot control the terminal or look like a line of ours.
#pragma once

#include <string>
#include <string_view>

namespace welkin {

// At most 200 characters on one line: printable UTF-8 stays; control characters, marks that turn or hide text and bytes that
// are no UTF-8 are '?', a line's end is a blank.
std::string printable(std::string_view text);

// True if all of it is UTF-8, each character in its shortest form, as JSON requires.
bool is_utf8(std::string_view text);

// Whole lines: control characters are '?', all else stays.
std::string printable_lines(std::string_view text);

}  // namespace welkin
