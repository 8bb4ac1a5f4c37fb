// SPDX-License-Identifier: Apache-2.0
// Intervals and goodput against sums, a search and a simulation that know no formula.
#include "core/fault/failure_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <tuple>

#include "core/fault/process_age.h"
#include "number_close.h"

namespace welkin {
namespace {

using tests::close;
using tests::Stated;
using tests::within;

constexpr double kHour = 3600;

// A job that fails once a day, and a checkpoint of a minute.
constexpr FailureCosts kDay{.mtbf_s = 24 * kHour, .held_s = 60, .written_s = 60, .restart_s = 300};

// The expected number of intervals between two failures, term by term: the n-th is whole where no failure came before its end.
double goodput_by_sum(const FailureCosts& costs, double interval) {
  double intervals = 0, term = 1;
  for (int n = 1; term > 1e-18; ++n) {
    const double end = costs.restart_s + costs.written_s - costs.held_s + n * (interval + costs.held_s);
    term = std::exp(-end / costs.mtbf_s);
    intervals += term;
  }
  return intervals * interval / costs.mtbf_s;
}

// One failure after the other: what is published when it comes stays.
double goodput_by_simulation(const FailureCosts& costs, double interval, int failures) {
  std::mt19937_64 random(7);
  double useful = 0, time = 0;
  for (int i = 0; i < failures; ++i) {
    const double uniform = (static_cast<double>(random() >> 11) + 0.5) / 9007199254740992.0;
    const double failure = -costs.mtbf_s * std::log(uniform);
    time += failure;
    double now = costs.restart_s;
    while (true) {
      now += interval;
      if (now + costs.written_s > failure) break;
      useful += interval;
      now += costs.held_s;
    }
  }
  return useful / time;
}

TEST(FailureModel, YoungsIntervalIsTheRootOfTwiceTheProduct) {
  EXPECT_TRUE(close(young_interval_s(kDay), 3219.9378875996970, kFp64, 4));  // sqrt(2 * 60 * 86400)
  EXPECT_EQ(young_interval_s({.mtbf_s = 100}), 0);
}

TEST(FailureModel, DalysIntervalIsTheSeriesOfThePaper) {
  // sqrt(2 d M) (1 + sqrt(d / 2M) / 3 + (d / 2M) / 9) - d, by hand for d = 2, M = 100: 20 (1 + 0.1 / 3 + 0.01 / 9) - 2.
  EXPECT_TRUE(close(daly_interval_s({.mtbf_s = 100, .held_s = 2}), 18 + 2.0 / 3 + 0.2 / 9, kFp64, 8));
  EXPECT_EQ(daly_interval_s({.mtbf_s = 100, .held_s = 200}), 100);
  EXPECT_EQ(daly_interval_s({.mtbf_s = 100, .held_s = 1000}), 100);
}

TEST(FailureModel, DalysIntervalIsTheBestOneButForTheNextTermOfItsSeries) {
  for (const double ratio : {1e-3, 1e-2, 0.05, 0.1, 0.5, 1.0, 1.5}) {
    const FailureCosts costs{.mtbf_s = 1, .held_s = ratio};
    const Stated next{ratio * ratio / 64, "the next term of the series is -8/135 (d / 2M)^2, and those that follow are smaller"};
    EXPECT_TRUE(within(daly_interval_s(costs), best_interval_s(costs), next)) << ratio;
  }
}

TEST(FailureModel, TheBestIntervalIsThatOfASearch) {
  for (const double held : {0.001, 0.02, 0.3, 1.0}) {
    const FailureCosts costs{.mtbf_s = 1, .held_s = held, .written_s = held, .restart_s = 0.1};
    constexpr double kStep = 1e-3;
    double best = 0, most = 0;
    for (double interval = kStep; interval < 2; interval += kStep) {
      const double useful = goodput_by_sum(costs, interval);
      if (useful > most) std::tie(most, best) = std::tuple(useful, interval);
    }
    EXPECT_TRUE(within(best_interval_s(costs), best, {kStep, "the search goes in such steps"})) << held;
  }
}

TEST(FailureModel, GoodputIsTheSumOverIntervals) {
  for (const double interval : {10.0, 100.0, 3000.0, 40000.0}) {
    EXPECT_TRUE(close(goodput(kDay, interval), goodput_by_sum(kDay, interval), kFp64, 20000)) << interval;
  }
  EXPECT_EQ(goodput(kDay, 0), 0);
}

// Also where a checkpoint is written beside training for longer than it holds it.
TEST(FailureModel, GoodputIsThatOfASimulation) {
  for (const FailureCosts& costs : {FailureCosts{.mtbf_s = 100, .held_s = 2, .written_s = 2, .restart_s = 10},
                                    FailureCosts{.mtbf_s = 100, .held_s = 1, .written_s = 9, .restart_s = 5}}) {
    constexpr int kFailures = 200000;
    const Stated spread{5 / std::sqrt(double{kFailures}), "five standard deviations of a mean, each term's being below its mean"};
    for (const double interval : {9.0, 20.0, 60.0}) {
      EXPECT_TRUE(within(goodput_by_simulation(costs, interval, kFailures), goodput(costs, interval), spread)) << interval;
    }
  }
}

// A minute each day, and starts of five minutes: 96 of 100 seconds are useful, and an interval of twice the length costs more.
TEST(FailureModel, TheBestGoodputIsAboutOneLessTheRoot) {
  const double best = best_interval_s(kDay), useful = goodput(kDay, best);
  EXPECT_TRUE(within(useful, 1 - std::sqrt(2 * 60 / kDay.mtbf_s) - 300 / kDay.mtbf_s, {1e-3, "terms of second order"}));
  EXPECT_GT(useful, goodput(kDay, 2 * best));
  EXPECT_GT(useful, goodput(kDay, best / 2));
}

TEST(FailureModel, NoCheckpointBeginsBeforeTheOneBeforeIsWritten) {
  EXPECT_EQ(best_interval_s({.mtbf_s = 1000, .held_s = 0.1, .written_s = 300}), 299.9);
}

TEST(ProcessAge, Grows) {
  const double before = process_age_s();
  EXPECT_GE(process_age_s(), before);
  EXPECT_GE(before, 0);
  EXPECT_LT(before, 24 * kHour);
}

}  // namespace
}  // namespace welkin
