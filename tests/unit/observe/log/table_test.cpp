// SPDX-License-Identifier: Apache-2.0
#include "observe/log/table.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace welkin::observe {
namespace {

TEST(Table, AlignsItsColumns) {
  Table table({{"key"}, {"value", Align::Right}, {"from"}});
  table.add_row({"lr", "0.001", "default"});
  table.add_row({"embed_dim", "384", "config/ViT.yaml:12"});
  table.add_row({"\xc3\xa9t\xc3\xa9", "1", ""});
  EXPECT_EQ(table.text(),
            "key        value  from\n"
            "---------  -----  ------------------\n"
            "lr         0.001  default\n"
            "embed_dim    384  config/ViT.yaml:12\n"
            "\xc3\xa9t\xc3\xa9            1\n");
}

TEST(Table, ARowOfAnotherWidthIsABug) {
  Table table({{"a"}, {"b"}});
  EXPECT_THROW(table.add_row({"1"}), InternalError);
}

}  // namespace
}  // namespace welkin::observe
