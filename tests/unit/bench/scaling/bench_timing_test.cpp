// SPDX-License-Identifier: Apache-2.0
// What a link adds to a step, on a machine whose speed changes meanwhile.
#include "bench/scaling/bench_timing.h"

#include <gtest/gtest.h>

#include <vector>

namespace welkin::bench {
namespace {

// Each call takes longer than the one before; a step over the link takes 0.5 s more than one over Gloo.
TEST(BenchTiming, TurnsTellWhatALinkAddsWhileTheMachineSlowsDown) {
  double drift = 0;
  std::vector<char> order;
  const auto takes = [&](char name, double seconds) {
    return [&, name, seconds] {
      order.push_back(name);
      return seconds + (drift += 0.25);
    };
  };
  const LinkTurns turns = measure_turns(2, takes('l', 2.5), takes('a', 1), takes('g', 2));
  EXPECT_EQ(order, (std::vector<char>{'l', 'a', 'g', 'g', 'a', 'l', 'l', 'a', 'g', 'g', 'a', 'l'}));
  EXPECT_DOUBLE_EQ(turns.added_s, 0.5);
}

}  // namespace
}  // namespace welkin::bench
