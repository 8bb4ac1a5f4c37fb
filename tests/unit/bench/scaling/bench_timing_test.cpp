// SPDX-License-Identifier: Apache-2.0
// What a link adds to a step, on a machine whose speed changes meanwhile.
#include "bench/scaling/bench_timing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace welkin::bench {
namespace {

// Each step computes and waits longer than the one before; over the link it waits 0.5 s more than over Gloo.
TEST(BenchTiming, TurnsTellWhatALinkAddsWhileTheMachineSlowsDown) {
  double drift = 0;
  std::vector<char> order;
  const auto takes = [&](char name, double computes, double waits) {
    return [&, name, computes, waits] {
      order.push_back(name);
      drift += 0.25;
      return StepTime{.seconds = computes + waits + 8 * drift, .waited_s = waits + drift};
    };
  };
  const LinkTurns turns = measure_turns(2, takes('l', 2, 0.75), takes('a', 2, 0), takes('g', 2, 0.25));
  EXPECT_EQ(order, (std::vector<char>{'l', 'a', 'g', 'g', 'a', 'l', 'l', 'a', 'g', 'g', 'a', 'l'}));
  EXPECT_DOUBLE_EQ(turns.added_s, 0.5);
}

TEST(BenchTiming, AThreadThatSleepsUsesNoCore) {
  const double cpu = thread_cpu_seconds();
  const Stopwatch watch;
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(thread_cpu_seconds() - cpu, watch.seconds() / 2);
}

}  // namespace
}  // namespace welkin::bench
