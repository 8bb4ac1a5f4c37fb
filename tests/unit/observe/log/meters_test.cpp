// SPDX-License-Identifier: Apache-2.0
#include "observe/log/meters.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/error.h"

namespace welkin::observe {
namespace {

TEST(MeanMeter, IsWeighted) {
  MeanMeter meter;
  EXPECT_EQ(meter.mean(), 0.0);
  meter.add(1.0, 3);
  meter.add(5.0);
  EXPECT_DOUBLE_EQ(meter.mean(), 2.0);
}

TEST(Window, ForgetsTheOldest) {
  Window window(3);
  EXPECT_EQ(window.median(), 0.0);
  for (const double value : {100.0, 1.0, 2.0, 3.0}) window.add(value);
  EXPECT_EQ(window.count(), 3u);
  EXPECT_DOUBLE_EQ(window.mean(), 2.0);
}

TEST(Window, QuantilesAreThoseOfNumpy) {
  Window window(10);
  for (const double value : {4.0, 1.0, 10.0, 2.0}) window.add(value);
  EXPECT_DOUBLE_EQ(window.median(), 3.0);
  EXPECT_DOUBLE_EQ(window.quantile(0.25), 1.75);
  EXPECT_DOUBLE_EQ(window.quantile(1.0), 10.0);
  EXPECT_DOUBLE_EQ(window.spread(), 5.5 - 1.75);
}

TEST(Window, NeedsRoom) { EXPECT_THROW(Window(0), InternalError); }

TEST(Throughput, CountsSinceItsStart) {
  Throughput throughput;
  throughput.add(1e9);
  throughput.start();
  throughput.add(10);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(throughput.units(), 10);
  EXPECT_GT(throughput.per_second(), 0);
  EXPECT_LE(throughput.per_second(), 10 / 0.02);
}

}  // namespace
}  // namespace welkin::observe
