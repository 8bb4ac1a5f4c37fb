// SPDX-License-Identifier: Apache-2.0
// Lists of hosts as Slurm writes them, and what is none.
#include "launch/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"

namespace welkin::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(HostList, EveryBracketIsExpanded) {
  EXPECT_THAT(expand_host_list("nid[001-002,007],login1", "X"), ElementsAre("nid001", "nid002", "nid007", "login1"));
  EXPECT_THAT(expand_host_list("r[1-2]n[3-4]", "X"), ElementsAre("r1n3", "r1n4", "r2n3", "r2n4"));
}

TEST(HostList, WhatIsNoneIsRefusedByTheNameOfItsVariable) {
  std::string brackets;
  for (int i = 0; i < 100'000; ++i) brackets += "[1]";
  for (const std::string& text :
       {std::string(), std::string("n[1"), std::string("n1]"), std::string("n]1[1]"), std::string("n[2-1]"),
        std::string("n[1-9999999]"), std::string("n[1-9999]m[1-9999]"), brackets}) {
    EXPECT_THAT([&] { expand_host_list(text, "SLURM_NODELIST"); },
                ThrowsMessage<ConfigError>(HasSubstr("the list cannot be read: SLURM_NODELIST=")))
        << text.substr(0, 40);
  }
}

}  // namespace
}  // namespace welkin::launch
