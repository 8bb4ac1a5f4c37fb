// SPDX-License-Identifier: Apache-2.0
#include "observe/log/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "captured_console.h"

namespace welkin::observe {
namespace {

using testing::HasSubstr;

TEST(Progress, PlainLinesWhenPiped) {
  CapturedConsole captured(false);
  double now = 100;
  Progress progress(captured.console(),
                    {.title = "epoch 3", .total = 1000, .plain_interval_s = 30, .now_s = [&] { return now; }});
  for (int step = 1; step <= 10; ++step) {
    now += 10;
    progress.update(100 * step, "loss 0.5");
  }
  progress.finish();
  EXPECT_EQ(captured.text(),
            "epoch 3:  300/1000 samples, 10.0/s, 1:10 left, loss 0.5\n"
            "epoch 3:  600/1000 samples, 10.0/s, 0:40 left, loss 0.5\n"
            "epoch 3:  900/1000 samples, 10.0/s, 0:10 left, loss 0.5\n"
            "epoch 3: 1000/1000 samples, 10.0/s, 0:00 left, finished\n");
}

TEST(Progress, OfARunThatGoesOnAfterwards) {
  CapturedConsole captured(false);
  double now = 100;
  Progress progress(
      captured.console(),
      {.title = "epoch 3/10", .total = 1000, .rest = 7000, .rest_s = 40, .plain_interval_s = 30, .now_s = [&] { return now; }});
  now += 30;
  progress.update(300);
  EXPECT_EQ(captured.text(), "epoch 3/10:  300/1000 samples, 10.0/s, 1:10 left, run 13:30 left\n");
}

TEST(Progress, AShortLoopSaysNothingWhenPiped) {
  CapturedConsole captured(false);
  {
    Progress progress(captured.console(), {.title = "valid", .total = 2});
    progress.update(2);
  }
  EXPECT_EQ(captured.text(), "");
}

TEST(Progress, ABarOnATerminalThatIsGoneAfterwards) {
  CapturedConsole captured(true, 80);
  double now = 0;
  Progress progress(captured.console(), {.title = "epoch 3", .total = 1000, .now_s = [&] { return now; }});
  now = 1;
  progress.update(250);
  now = 1.01;
  progress.update(260);  // too soon to draw
  progress.finish();
  EXPECT_EQ(captured.text(), "\r\x1b[Kepoch 3  [######...................]   25%   250/1000 samples, 250/s, 0:03 left\r\x1b[K");
}

TEST(Progress, AnUnknownTotalShowsNoShare) {
  CapturedConsole captured(true);
  double now = 0;
  Progress progress(captured.console(), {.title = "reading", .unit = "files", .now_s = [&] { return now; }});
  now = 2;
  progress.update(3);
  EXPECT_EQ(captured.text(), "\r\x1b[Kreading  3 files, 1.50/s");
}

TEST(Progress, RateForgetsASlowStart) {
  CapturedConsole captured(true, 100);
  double now = 0;
  Progress progress(captured.console(), {.title = "t", .total = 100000, .now_s = [&] { return now; }});
  now = 60;
  progress.update(1);  // the first batch waited for the data
  for (int i = 1; i <= 300; ++i) {
    now += 0.1;
    progress.update(1 + 10 * i);
  }
  EXPECT_THAT(captured.text(), HasSubstr("  3001/100000 samples, 100/s, 16:10 left"));
}

TEST(Progress, FormatsDurationsAndRates) {
  EXPECT_EQ(format_duration(7.4), "0:07");
  EXPECT_EQ(format_duration(754), "12:34");
  EXPECT_EQ(format_duration(11045), "3:04:05");
  EXPECT_EQ(format_duration(2 * 86400 + 3 * 3600 + 4 * 60), "2d 03:04");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::infinity()), "?");
  EXPECT_EQ(format_rate(0.01234), "0.0123");
  EXPECT_EQ(format_rate(12.34), "12.3");
  EXPECT_EQ(format_rate(1234.4), "1234");
  EXPECT_EQ(format_rate(0), "0");
}

}  // namespace
}  // namespace welkin::observe
