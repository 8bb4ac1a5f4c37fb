// SPDX-License-Identifier: Apache-2.0
// What the sentence about a failed collective says of the other ranks, in real processes: killed, slow, stopped by an error of
// its own, in another call; and that a rank which only waits for the first one in the ring is not taken for dead.
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "lost_ranks.h"
#include "parallel/comm/collectives.h"
#include "rank_processes.h"

namespace welkin::parallel {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

const RankTest kKilledRank("killed_rank", [](Connection& connection) {
  const Group all = world_of(connection);
  barrier(all);
  if (connection.rank() == 2) _exit(0);
  const std::string text = comm_error_of([&] { all_reduce(all, at::ones({3})); });
  if (connection.rank() == 0) {
    EXPECT_THAT(text, HasSubstr("silent ranks=[2], reason="));
  }
  leave();
});

// The call goes as direct messages, of which those with the other ranks are made.
const RankTest kKilledInALongCall("killed_in_a_long_call", [](Connection& connection) {
  const Group all = world_of(connection);
  barrier(all);
  if (connection.rank() == 2) _exit(0);
  const at::Tensor whole = at::ones({400'000}), part = at::empty({100'000});
  const auto start = std::chrono::steady_clock::now();
  const std::string text = comm_error_of([&] { start_reduce_scatter_into(all, part, whole).wait(); });
  if (connection.rank() == 0) {
    EXPECT_THAT(text, HasSubstr("silent ranks=[2], reason="));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
  leave();
});

// What the system sends a process that writes to a rank which is gone.
const RankTest kBrokenPipe("broken_pipe", [](Connection& connection) {
  ASSERT_EQ(raise(SIGPIPE), 0);
  barrier(world_of(connection));
});

// Pairs exchange in a ring: 0 and 1 are done with each other and the dead rank's neighbour waits for nobody dead.
const RankTest kWaitingRank(
    "waiting_rank",
    [](Connection& connection) {
      const Group all = world_of(connection);
      barrier(all);
      if (connection.rank() == 1) _exit(0);
      at::Tensor values = at::ones({2});
      if (connection.rank() == 2) {  // waits for rank 0 alone, which lives and fails
        comm_error_of([&] { start_receive(all, values, 0).wait(); });
        leave();
      }
      std::this_thread::sleep_for(300ms);
      const std::string text = comm_error_of([&] { start_receive(all, values, 1).wait(); });
      EXPECT_THAT(text, HasSubstr("silent ranks=[1], reason="));
      EXPECT_THAT(text, Not(HasSubstr("rank 2")));  // it makes the call that stands at this number
      leave();
    },
    /*deadline_s=*/20);

const RankTest kAbsentMember(
    "absent_member",
    [](Connection& connection) {
      barrier(world_of(connection));
      if (connection.rank() == 1) {
        std::this_thread::sleep_for(4s);
        leave();
      }
      const GroupMembers late{.ranks = {0, 1, 2}, .place = connection.rank()};
      EXPECT_THAT(comm_error_of([&] { connection.make_group("late", late); }),
                  HasSubstr("the members of a group cannot connect: group=late [0, 1, 2], silent ranks=[1], own address="));
      if (connection.rank() == 0) std::this_thread::sleep_for(1s);  // it serves the store
      leave();
    },
    /*deadline_s=*/2);

const RankTest kSlowRank(
    "slow_rank",
    [](Connection& connection) {
      const Group all = world_of(connection);
      barrier(all);
      if (connection.rank() == 1) {
        std::this_thread::sleep_for(6s);
        leave();
      }
      const auto start = std::chrono::steady_clock::now();
      const std::string text = comm_error_of([&] { all_reduce(all, at::ones({3})); });
      EXPECT_THAT(text, HasSubstr("call=all_reduce #2 of group world [0, 1, 2], Float (3)"));
      EXPECT_THAT(text, HasSubstr("rank 1 makes no call; its last, barrier #1 of group world [0, 1, 2], (), ended "));
      EXPECT_THAT(text, Not(HasSubstr("silent")));
      EXPECT_LT(std::chrono::steady_clock::now() - start, 6s);
      leave();
    },
    /*deadline_s=*/2);

const RankTest kStoppedRank("stopped_rank", [](Connection& connection) {
  const Group all = world_of(connection);
  barrier(all);
  if (connection.rank() == 1) {
    connection.announce_stop("[data] the file is gone: path=x.h5. Restore it.");
    _exit(0);
  }
  const std::string text = comm_error_of([&] { all_gather(all, at::ones({3}), 0, Lengths(3, 3)); });
  EXPECT_THAT(text, HasSubstr("rank 1 stopped: [data] the file is gone: path=x.h5"));
  EXPECT_THAT(text, Not(HasSubstr("silent")));
  leave();
});

// One rank is a call ahead: the others wait for it in the call that it has left out.
const RankTest kOtherOrder(
    "other_order",
    [](Connection& connection) {
      const Group all = world_of(connection);
      barrier(all);
      const std::string text = connection.rank() == 1 ? comm_error_of([&] { broadcast(all, at::ones({4}), 0); })
                                                      : comm_error_of([&] { all_reduce(all, at::ones({3})); });
      if (connection.rank() == 0) {
        EXPECT_THAT(text, HasSubstr("rank 1 made another call: broadcast #2 of group world [0, 1, 2], Float (4)"));
        EXPECT_THAT(text, Not(HasSubstr("silent")));
      }
      leave();
    },
    /*deadline_s=*/3);

TEST(FailedCalls, NameTheRankThatWasKilled) { run_on_ranks("killed_rank", 4); }
TEST(FailedCalls, NameTheRankThatWasKilledInALongCall) { run_on_ranks("killed_in_a_long_call", 4); }
TEST(FailedCalls, AreNotEndedByABrokenPipe) { run_on_ranks("broken_pipe", 2); }
TEST(FailedCalls, DoNotNameARankThatWaits) { run_on_ranks("waiting_rank", 3); }
TEST(FailedCalls, NameTheRankThatIsSlow) { run_on_ranks("slow_rank", 3); }
TEST(FailedCalls, AMemberThatMakesNoGroupIsNamed) { run_on_ranks("absent_member", 3); }
TEST(FailedCalls, NameTheRankThatStopped) { run_on_ranks("stopped_rank", 3); }
TEST(FailedCalls, NameTheRankInAnotherCall) { run_on_ranks("other_order", 3); }

}  // namespace
}  // namespace welkin::parallel
