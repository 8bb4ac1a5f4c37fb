// SPDX-License-Identifier: Apache-2.0
// Text of a file for a terminal: what is in it is no instruction to the terminal, and no line of ours.
#pragma once

#include <string>
#include <string_view>

namespace welkin {

// At most 200 characters on one line: what a terminal prints stays, in UTF-8; control characters, marks that turn or hide text
// and bytes that are no UTF-8 are '?', a line's end is a blank.
std::string printable(std::string_view text);

// Whether all of it is UTF-8, each character in its shortest form: what may stand in JSON.
bool is_utf8(std::string_view text);

// Whole lines: control characters are '?', all else stays.
std::string printable_lines(std::string_view text);

}  // namespace welkin
