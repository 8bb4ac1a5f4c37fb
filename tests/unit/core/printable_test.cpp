// SPDX-License-Identifier: Apache-2.0
#include "core/printable.h"

#include <gtest/gtest.h>

namespace welkin {
namespace {

TEST(Printable, TextOfAFileIsOneLineOfAscii) {
  EXPECT_EQ(printable("a\x1b[31m\nb\x7f\xc3\xa9"), "a?[31m b???");
  EXPECT_EQ(printable(std::string(300, 'x')), std::string(200, 'x') + "...");
  EXPECT_EQ(printable_lines("k: v\n\x1b[2J\xc3\xa9\r"), "k: v\n?[2J\xc3\xa9?");
}

}  // namespace
}  // namespace welkin
