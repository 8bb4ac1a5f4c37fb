// SPDX-License-Identifier: Apache-2.0
#include "train/health/phase_times.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace welkin::train {
namespace {

TEST(PhaseTimes, NamesTheSlowRankAndItsPhase) {
  const PhaseSeconds normal{0.1, 1, 2, 0.5};
  EXPECT_TRUE(find_slow_ranks({normal, normal, normal}, 1.5).empty());
  const auto slow = find_slow_ranks({normal, {0.1, 2, 2, 0.5}, normal, {1.1, 1, 2, 0.5}}, 1.5);
  ASSERT_EQ(slow.size(), 2u);
  EXPECT_EQ(slow[0].rank, 1);
  EXPECT_EQ(slow[0].phase, "forward");
  EXPECT_EQ(slow[0].factor, 2);
  EXPECT_EQ(slow[1].rank, 3);
  EXPECT_EQ(slow[1].phase, "fetch");
}

TEST(PhaseTimes, OfTwoRanksTheFasterIsTheMeasureAndShortTimesMayVary) {
  EXPECT_EQ(find_slow_ranks({{0.1, 1, 1, 1}, {0.1, 1.6, 1, 1}}, 1.5).size(), 1u);
  EXPECT_TRUE(find_slow_ranks({{0.01, 1, 1, 1}, {0.1, 1, 1, 1}}, 1.5).empty());
}

TEST(PhaseTimes, WhoWaitsInTheBackwardPassIsNotSlow) {
  EXPECT_TRUE(find_slow_ranks({{0.1, 1, 9, 1}, {0.1, 1.4, 2, 1}}, 1.5).empty());
}

TEST(PhaseTimes, CountsASpanWithWhatItsListenersTake) {
  struct Sleeper : observe::SpanSink {
    void begin(std::string_view /*name*/) noexcept override { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }
    void end(std::string_view /*name*/, observe::SpanClock::time_point /*began*/) noexcept override {}
  } sleeper;
  PhaseTimes times(&sleeper);
  observe::Tracer tracer;
  tracer.add_sink(times);
  { const observe::Span span(&tracer, "forward"); }
  { const observe::Span span(&tracer, "another"); }
  const PhaseSeconds taken = times.take();
  EXPECT_GE(taken[1], 0.02);
  EXPECT_EQ(taken[0] + taken[2] + taken[3], 0);
  EXPECT_EQ(times.take()[1], 0);
}

}  // namespace
}  // namespace welkin::train
