// SPDX-License-Identifier: Apache-2.0
// Ranks that wait for those that write, in real processes whose collectives have a deadline of two seconds: longer than that
// while files grow, and not for ever where they do not.
#include "train/checkpoint/slow_writes.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "core/error.h"
#include "core/fault/write_watch.h"
#include "lost_ranks.h"
#include "parallel/comm/collectives.h"
#include "rank_processes.h"

namespace welkin::train {
namespace {

using namespace std::chrono_literals;
using parallel::Connection;
using parallel::Group;
using parallel::RankTest;

constexpr int64_t kSlowDeadline_s = 2;

// Twice the deadline.
void write_slowly() {
  for (int i = 0; i < 20; ++i) {
    note_write_progress();
    std::this_thread::sleep_for(200ms);
  }
}

const RankTest kSlowTogether(
    "written_together",
    [](Connection& connection) {
      const Group all = parallel::world_of(connection);
      bool has_written = false;
      write_together(all, [&] {
        if (connection.rank() == 1) write_slowly();
        has_written = true;
      });
      EXPECT_TRUE(has_written);
      parallel::barrier(all);
    },
    kSlowDeadline_s);

const RankTest kSlowRefused(
    "a_write_that_fails",
    [](Connection& connection) {
      const Group all = parallel::world_of(connection);
      const auto write = [&] {
        if (connection.rank() == 1) throw DataError("disk", "it is full", "Free space");
      };
      if (connection.rank() == 1) {
        EXPECT_THROW(write_together(all, write), DataError);
      } else {
        write_together(all, write);
      }
      parallel::barrier(all);
    },
    kSlowDeadline_s);

const RankTest kSlowAsked(
    "asked_by_the_first",
    [](Connection& connection) {
      const Group all = parallel::world_of(connection);
      constexpr int64_t kSum = FirstWrites::kEnd + 1;
      double sum = 0;
      const auto exchange = [&] { sum += parallel::all_reduce(all, at::full({1}, 1.0)).item<double>(); };
      if (connection.rank() == 0) {
        FirstWrites writes(all);
        for (int i = 0; i < 2; ++i) {
          write_slowly();
          writes.ask(kSum, exchange);
        }
        writes.end();
      } else {
        while (FirstWrites::next_word(all) == kSum) exchange();
      }
      EXPECT_EQ(sum, 2.0 * static_cast<double>(all.size()));
      parallel::barrier(all);
    },
    kSlowDeadline_s);

// Nothing is written: the others end after two deadlines, and not before one. The writer finds out in its next call.
const RankTest kSlowHangs(
    "a_disk_that_hangs",
    [](Connection& connection) {
      const Group all = parallel::world_of(connection);
      parallel::barrier(all);
      const auto start = std::chrono::steady_clock::now();
      if (connection.rank() == 0) {
        const auto hang = [] { std::this_thread::sleep_for(12s); };
        const auto go_on = [&] {
          write_together(all, hang);
          parallel::barrier(all);
        };
        EXPECT_THAT(parallel::comm_error_of(go_on), testing::HasSubstr("a collective failed"));
      } else {
        const std::string text = parallel::comm_error_of([&] { write_together(all, [] {}); });
        EXPECT_THAT(text, testing::HasSubstr("a collective failed: call=all_reduce"));
        EXPECT_GT(std::chrono::steady_clock::now() - start, 2s);
        EXPECT_LT(std::chrono::steady_clock::now() - start, 11s);
      }
      parallel::leave();
    },
    kSlowDeadline_s);

const RankTest kSlowLost(
    "a_writer_that_is_lost",
    [](Connection& connection) {
      const Group all = parallel::world_of(connection);
      parallel::barrier(all);
      const auto start = std::chrono::steady_clock::now();
      if (connection.rank() == 0) {
        const std::string text = parallel::comm_error_of([&] { write_together(all, [] {}); });
        EXPECT_THAT(text, testing::HasSubstr("silent ranks=[1]"));
        EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
        parallel::leave();
      }
      write_together(all, [] { _exit(0); });
    },
    kSlowDeadline_s);

TEST(SlowWrites, RanksWaitForAnotherThatWrites) { parallel::run_on_ranks("written_together", 3); }

TEST(SlowWrites, AWriteThatFailsIsThrownOnItsRank) { parallel::run_on_ranks("a_write_that_fails", 3); }

TEST(SlowWrites, TheFirstAsksForPartsBetweenItsWrites) { parallel::run_on_ranks("asked_by_the_first", 3); }

TEST(SlowWrites, ADiskThatHangsIsNotWaitedForForEver) { parallel::run_on_ranks("a_disk_that_hangs", 2); }

TEST(SlowWrites, ALostWriterIsNamed) { parallel::run_on_ranks("a_writer_that_is_lost", 2); }

}  // namespace
}  // namespace welkin::train
