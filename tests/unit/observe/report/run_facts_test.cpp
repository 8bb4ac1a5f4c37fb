// SPDX-License-Identifier: Apache-2.0
// Files of a run folder that somebody else may have written.
#include "observe/report/run_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace welkin::observe {
namespace {

using ::testing::Contains;
using ::testing::Pair;

TEST(RunFacts, WhatIsNestedWithoutEndIsLeftOut) {
  const std::string nested = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const std::string status = R"({"state": "running", "error": )" + nested + R"(, "host": "n1", "ranks": 2, "step": 5})";
  const RunFacts facts = run_facts_of({.status = status});
  EXPECT_EQ(facts.state, "running");
  EXPECT_EQ(facts.host, "n1");
  EXPECT_THAT(facts.environment, Contains(Pair("step", "5")));
  const std::string event = R"({"event": "spike", "a": )" + nested + R"(, "step": 7, "rank": 1})" + "\n";
  const RunFacts of_events = run_facts_of({.events = event});
  ASSERT_EQ(of_events.events.size(), 1U);
  EXPECT_EQ(of_events.events[0].step, 7);
}

}  // namespace
}  // namespace welkin::observe
