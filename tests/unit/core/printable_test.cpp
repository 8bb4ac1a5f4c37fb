// SPDX-License-Identifier: Apache-2.0
#include "core/printable.h"

#include <gtest/gtest.h>

namespace welkin {
namespace {

TEST(IsUtf8, TakesWholeCharactersInTheirShortestForm) {
  for (const char* text : {"", "plain\n", "caf\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x8c\x8d"}) EXPECT_TRUE(is_utf8(text)) << text;
  for (const char* text : {"caf\xe9", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff"})
    EXPECT_FALSE(is_utf8(text));
}

TEST(Printable, TextOfAFileIsOneLineWithoutControls) {
  EXPECT_EQ(printable("a\x1b[31m\nb\x7f\xc3\xa9"), "a?[31m b?\xc3\xa9");
  EXPECT_EQ(printable("20 \xc2\xb0\x43, \xe6\xb5\xb7, \xf0\x9d\x84\x9e"), "20 \xc2\xb0\x43, \xe6\xb5\xb7, \xf0\x9d\x84\x9e");
  // A control character of two bytes, text turned around, half a character, a character in too many bytes, a surrogate.
  EXPECT_EQ(printable("\xc2\x9b|\xe2\x80\xae|\xc3|\xc0\xaf|\xed\xa0\x80|\xff"), "??|???|?|??|???|?");
  EXPECT_EQ(printable(std::string(300, 'x')), std::string(200, 'x') + "...");
  EXPECT_EQ(printable_lines("k: v\n\x1b[2J\xc3\xa9\r"), "k: v\n?[2J\xc3\xa9?");
}

}  // namespace
}  // namespace welkin
