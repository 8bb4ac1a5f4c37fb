// SPDX-License-Identifier: Apache-2.0
#include "observe/plot/markup.h"

#include <gtest/gtest.h>

namespace welkin::observe {
namespace {

TEST(Markup, WordsCannotEndWhatHoldsThem) {
  EXPECT_EQ(escaped_markup("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
  EXPECT_EQ(escaped_markup("\xc3\xa9t\xc3\xa9\t1"), "\xc3\xa9t\xc3\xa9\t1");
}

TEST(Markup, ControlCharactersAreLeftOut) { EXPECT_EQ(escaped_markup(std::string_view("a\0b\x1b\n", 5)), "ab"); }

}  // namespace
}  // namespace welkin::observe
