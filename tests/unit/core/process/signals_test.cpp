// SPDX-License-Identifier: Apache-2.0
#include "core/process/signals.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/error.h"

namespace welkin {
namespace {

TEST(InterruptWatch, TheFirstSignalSetsTheFlag) {
  const InterruptWatch watch;
  EXPECT_FALSE(watch.requested());
  raise(SIGTERM);
  EXPECT_EQ(watch.signal_number(), SIGTERM);
}

TEST(InterruptWatch, TheSameEventTwiceCountsOnce) {
  const InterruptWatch watch;
  raise(SIGINT);
  raise(SIGTERM);
  EXPECT_EQ(watch.signal_number(), SIGINT);
}

TEST(InterruptWatch, ARequestIsASignalAndNoHandlerIsTouched) {
  std::signal(SIGINT, SIG_IGN);
  {
    InterruptWatch watch(InterruptWatch::Watched::None);
    raise(SIGINT);
    EXPECT_FALSE(watch.requested());
    watch.request(SIGTERM);
    EXPECT_EQ(watch.signal_number(), SIGTERM);
  }
  EXPECT_EQ(std::signal(SIGINT, SIG_DFL), SIG_IGN);
}

TEST(InterruptWatch, ANewWatchStartsAfresh) {
  {
    const InterruptWatch watch;
    raise(SIGINT);
  }
  const InterruptWatch watch;
  EXPECT_FALSE(watch.requested());
}

TEST(InterruptWatch, TwoAtOnceAreABug) {
  const InterruptWatch watch;
  EXPECT_THROW(InterruptWatch(), InternalError);
}

TEST(InterruptWatch, ItPutsTheFormerHandlersBack) {
  std::signal(SIGINT, SIG_IGN);
  { const InterruptWatch watch; }
  EXPECT_EQ(std::signal(SIGINT, SIG_DFL), SIG_IGN);
}

TEST(InterruptWatch, WatchesSigusr1AloneUntilItWatchesAll) {
  std::signal(SIGTERM, SIG_IGN);
  {
    InterruptWatch watch(InterruptWatch::Watched::Requeue);
    raise(SIGTERM);
    EXPECT_FALSE(watch.requested());
    raise(SIGUSR1);
    EXPECT_EQ(watch.signal_number(), SIGUSR1);
    watch.watch_all();
    EXPECT_EQ(watch.signal_number(), SIGUSR1);
  }
  EXPECT_EQ(std::signal(SIGTERM, SIG_DFL), SIG_IGN);
  InterruptWatch watch(InterruptWatch::Watched::Requeue);
  watch.watch_all();
  raise(SIGTERM);
  EXPECT_EQ(watch.signal_number(), SIGTERM);
}

TEST(InterruptWatchDeathTest, TheSecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        const InterruptWatch watch;
        raise(SIGINT);
        std::this_thread::sleep_for(std::chrono::milliseconds(150));
        raise(SIGINT);
      },
      testing::ExitedWithCode(130), "");
}

}  // namespace
}  // namespace welkin
