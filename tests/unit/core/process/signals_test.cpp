// SPDX-License-Identifier: Apache-2.0
#include "core/process/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
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

TEST(InterruptWatch, ATerminalThatClosesIsHeardUnlessItIsIgnored) {
  {
    const InterruptWatch watch;
    raise(SIGHUP);
    EXPECT_EQ(watch.signal_number(), SIGHUP);
  }
  std::signal(SIGHUP, SIG_IGN);  // as nohup does
  {
    const InterruptWatch watch;
    raise(SIGHUP);
    EXPECT_FALSE(watch.requested());
  }
  EXPECT_EQ(std::signal(SIGHUP, SIG_DFL), SIG_IGN);
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

// A handler on the stack of a thread that computes would destroy what oneDNN keeps there (signal_stack.h).
TEST(InterruptWatch, HandlersHaveAStackOfTheirOwn) {
  stack_t before{}, within{}, after{};  // AddressSanitizer gives a thread one
  ASSERT_EQ(sigaltstack(nullptr, &before), 0);
  {
    InterruptWatch watch(InterruptWatch::Watched::Requeue);
    watch.watch_all();
    ASSERT_EQ(sigaltstack(nullptr, &within), 0);
    EXPECT_EQ(within.ss_flags & SS_DISABLE, 0);
    for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) {
      struct sigaction action {};
      ASSERT_EQ(sigaction(number, nullptr, &action), 0);
      EXPECT_NE(action.sa_flags & SA_ONSTACK, 0) << number;
    }
    raise(SIGTERM);
    EXPECT_EQ(watch.signal_number(), SIGTERM);
  }
  ASSERT_EQ(sigaltstack(nullptr, &after), 0);
  EXPECT_EQ(after.ss_flags & SS_DISABLE, before.ss_flags & SS_DISABLE);
  EXPECT_EQ(after.ss_sp, before.ss_sp);
}

TEST(SignalStack, AThreadKeepsTheOneThatItHas) {
  const SignalStack outer;
  stack_t before{}, within{}, after{};
  sigaltstack(nullptr, &before);
  {
    const SignalStack inner;
    sigaltstack(nullptr, &within);
  }
  sigaltstack(nullptr, &after);
  EXPECT_EQ(within.ss_sp, before.ss_sp);
  EXPECT_EQ(after.ss_sp, before.ss_sp);
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

// Waits for the parent's next signal. It may come before the wait.
void tell_and_wait(int pipe, const sigset_t& heard) {
  EXPECT_EQ(write(pipe, "x", 1), 1);
  sigsuspend(&heard);
}

// A batch system signals all processes of a job, and on a loaded node the launcher passes its own signal on late.
TEST(InterruptWatch, ASignalThatTheParentPassesOnIsTheSameEvent) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    const InterruptWatch watch;
    raise(SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    sigset_t blocked, heard;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, &heard);
    for (int i = 0; i < 3; ++i) tell_and_wait(ends[1], heard);
    _exit(0);
  }
  ::close(ends[1]);
  char told = 0;
  EXPECT_EQ(read(ends[0], &told, 1), 1);
  kill(child, SIGTERM);
  EXPECT_EQ(read(ends[0], &told, 1), 1) << "the parent's signal has ended the process";
  kill(child, SIGTERM);  // now somebody insists
  EXPECT_EQ(read(ends[0], &told, 1), 0);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 130);
  ::close(ends[0]);
}

}  // namespace
}  // namespace welkin
