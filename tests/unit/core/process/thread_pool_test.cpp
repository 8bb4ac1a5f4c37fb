// SPDX-License-Identifier: Apache-2.0
#include "core/process/thread_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <latch>
#include <numeric>
#include <stdexcept>
#include <string>

#include "core/error.h"

namespace welkin {
namespace {

TEST(ThreadPool, RunsEveryTaskOnce) {
  ThreadPool pool({.num_threads = 3, .queue_capacity = 2});
  std::atomic<int> sum = 0;
  for (int i = 1; i <= 1000; ++i) pool.submit([&sum, i] { sum += i; });
  pool.wait();
  EXPECT_EQ(sum, 500500);
}

TEST(ThreadPool, SubmitWaitsWhileTheQueueIsFull) {
  ThreadPool pool({.num_threads = 1, .queue_capacity = 1});
  std::latch release(1);
  std::atomic<int> submitted = 0;
  std::jthread owner([&] {
    for (int i = 0; i < 4; ++i) {
      pool.submit([&] { release.wait(); });
      ++submitted;
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(submitted, 2) << "one runs, one waits, the third has no slot";
  release.count_down();
  owner.join();
  pool.wait();
  EXPECT_EQ(submitted, 4);
}

TEST(ThreadPool, TheOwnerGetsTheErrorAndThePoolGoesOn) {
  ThreadPool pool({.num_threads = 2});
  pool.submit([] { throw DataError("test", "n=1", "Stop"); });
  EXPECT_THROW(pool.wait(), DataError);
  std::atomic<bool> ran = false;
  pool.submit([&] { ran = true; });
  EXPECT_NO_THROW(pool.wait());
  EXPECT_TRUE(ran);
}

// The letter behind the name, which may have spaces and parentheses in it.
bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const size_t name_end = stat.rfind(") ");
  return name_end != std::string::npos && stat.at(name_end + 2) == 'S';
}

// The task ends when the owner waits for its thread, and so after the pool has been told to stop.
TEST(ThreadPool, DestructorDropsWhatHasNotBegun) {
  std::atomic<int> ran = 0;
  std::atomic<bool> is_leaving = false;
  const pid_t owner = gettid();
  std::latch begun(1);
  {
    ThreadPool pool({.num_threads = 1, .queue_capacity = 10});
    pool.submit([&] {
      begun.count_down();
      while (!is_leaving || !is_asleep(owner)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++ran;
    });
    for (int i = 0; i < 5; ++i) pool.submit([&] { ++ran; });
    begun.wait();
    is_leaving = true;
  }
  EXPECT_EQ(ran, 1);
}

TEST(ThreadPool, ParallelForVisitsEachIndexOnce) {
  ThreadPool pool({.num_threads = 3});
  std::vector<std::atomic<int>> visits(777);
  pool.parallel_for(777, [&](int64_t i) { ++visits[static_cast<size_t>(i)]; });
  for (const auto& count : visits) EXPECT_EQ(count, 1);
  pool.parallel_for(0, [](int64_t) { FAIL(); });
}

TEST(ThreadPool, ParallelForRethrowsTheLowestFailure) {
  ThreadPool pool({.num_threads = 4});
  for (int round = 0; round < 50; ++round) {
    std::atomic<int64_t> lowest = 1000;
    try {
      pool.parallel_for(1000, [&](int64_t i) {
        if (i < 10) return;
        for (int64_t seen = lowest; i < seen && !lowest.compare_exchange_weak(seen, i);) {
        }
        throw std::out_of_range(std::to_string(i));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::out_of_range& error) {
      EXPECT_EQ(error.what(), std::to_string(lowest));
    }
  }
  pool.wait();
}

TEST(ThreadPool, ParallelForNestsAndSharesThePool) {
  ThreadPool pool({.num_threads = 2, .queue_capacity = 1});
  std::atomic<int> calls = 0;
  const auto nested = [&] { pool.parallel_for(8, [&](int64_t) { pool.parallel_for(8, [&](int64_t) { ++calls; }); }); };
  std::jthread other(nested);
  nested();
  other.join();
  EXPECT_EQ(calls, 128);
}

TEST(ThreadPool, APoolWithoutThreadsIsABug) { EXPECT_THROW(ThreadPool({.num_threads = 0}), InternalError); }

}  // namespace
}  // namespace welkin
