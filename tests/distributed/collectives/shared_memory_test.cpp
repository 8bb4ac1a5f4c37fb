// SPDX-License-Identifier: Apache-2.0
// Collectives of real processes over shared memory: values of every size, members that end or stop, memory that is refused.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "core/text.h"
#include "lost_ranks.h"
#include "parallel/comm/collectives.h"
#include "rank_processes.h"

namespace welkin::parallel {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Values whose sum depends on the order.
at::Tensor uneven_values(int64_t rank, int64_t count, at::ScalarType dtype) {
  return ((at::arange(count, at::kDouble) + 1) / 3 + static_cast<double>(rank) / 7).to(dtype);
}

at::Tensor sum_in_order(int64_t ranks, int64_t count, at::ScalarType dtype) {
  at::Tensor sum = uneven_values(0, count, dtype);
  for (int64_t rank = 1; rank < ranks; ++rank) sum = sum + uneven_values(rank, count, dtype);
  return sum;
}

void check_sizes(const Group& all, int64_t count, at::ScalarType dtype) {
  const int64_t n = all.size(), me = all.group_rank();
  EXPECT_TRUE(at::equal(all_reduce(all, uneven_values(me, count, dtype)), sum_in_order(n, count, dtype)))
      << dtype << " " << count;
  EXPECT_TRUE(at::equal(all_reduce(all, uneven_values(me, count, dtype), Reduction::Max), uneven_values(n - 1, count, dtype)))
      << count;
  const at::Tensor whole = uneven_values(me, n * count, dtype), own = at::empty({count}, whole.options());
  start_reduce_scatter_into(all, own, whole).wait();
  EXPECT_TRUE(at::equal(own, sum_in_order(n, n * count, dtype).narrow(0, me * count, count))) << dtype << " " << count;
  const at::Tensor gathered = at::empty({n, count}, whole.options());
  start_all_gather_into(all, gathered, uneven_values(me, count, dtype)).wait();
  for (int64_t rank = 0; rank < n; ++rank) EXPECT_TRUE(at::equal(gathered[rank], uneven_values(rank, count, dtype))) << count;
  const at::Tensor told = uneven_values(me, count, dtype);
  broadcast(all, told, n - 1);
  EXPECT_TRUE(at::equal(told, uneven_values(n - 1, count, dtype))) << dtype << " " << count;
}

// Member a sends member b a * count + b values.
void check_runs(const Group& all, int64_t count) {
  const int64_t n = all.size(), me = all.group_rank();
  Lengths to, from;
  std::vector<at::Tensor> leaving, expected;
  for (int64_t rank = 0; rank < n; ++rank) {
    to.push_back(me * count + rank);
    from.push_back(rank * count + me);
    leaving.push_back(uneven_values(me + rank, to.back(), at::kFloat));
    expected.push_back(uneven_values(rank + me, from.back(), at::kFloat));
  }
  EXPECT_TRUE(at::equal(exchange_runs(all, at::cat(leaving), to, from), at::cat(expected))) << count;
}

const RankTest kSharedSizes("shared_sizes", [](Connection& connection) {
  const Group all = world_of(connection);
  EXPECT_EQ(connection.carrier(), "shared memory");
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong}) {
    for (const int64_t count : {0, 1, 3, 2049, 40'001}) check_sizes(all, count, dtype);
  }
  check_sizes(all, 1'000'003, at::kFloat);
  for (const int64_t count : {0, 5, 30'001}) check_runs(all, count);
});

// Several under way, of which each is waited for late; and messages between them, which go another way.
const RankTest kManyShared("many_shared", [](Connection& connection) {
  const Group all = world_of(connection), same = world_of(connection);
  std::vector<PendingTensor> sums, others;
  for (int64_t i = 0; i < 50; ++i) {
    sums.push_back(start_all_reduce(all, at::full({1000 * i}, i, at::kFloat)));
    others.push_back(start_all_reduce(same, at::full({i}, 2 * i, at::kDouble)));
  }
  const int64_t next = (all.group_rank() + 1) % all.size(), previous = (all.group_rank() + all.size() - 1) % all.size();
  const at::Tensor heard = at::empty({5});
  Transfer receiving = start_receive(all, heard, previous);
  start_send(all, at::full({5}, all.group_rank(), at::kFloat), next).wait();
  receiving.wait();
  EXPECT_TRUE(at::equal(heard, at::full({5}, previous, at::kFloat)));
  for (int64_t i = 49; i >= 0; --i) {
    EXPECT_TRUE(at::equal(others[static_cast<size_t>(i)].wait(), at::full({i}, 2 * i * all.size(), at::kDouble)));
    EXPECT_TRUE(at::equal(sums[static_cast<size_t>(i)].wait(), at::full({1000 * i}, i * all.size(), at::kFloat)));
  }
});

bool has_left_something() {
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    if (entry.path().filename().string().find("welkin") != std::string::npos) return true;
  }
  return false;
}

// In the middle of a call. The others do not wait for the deadline.
const RankTest kEndsInACall("ends_in_a_call", [](Connection& connection) {
  const Group all = world_of(connection);
  ASSERT_EQ(connection.carrier(), "shared memory");
  barrier(all);
  std::jthread end;
  if (connection.rank() == 1) {
    end = std::jthread([] {
      std::this_thread::sleep_for(200ms);
      _exit(0);
    });
  }
  const at::Tensor values = at::zeros({5'000'000});
  const auto start = std::chrono::steady_clock::now();
  const std::string text = comm_error_of([&] {
    while (std::chrono::steady_clock::now() - start < 20s) all_reduce_in_place(all, values);
  });
  if (connection.rank() == 0) {
    EXPECT_THAT(text, HasSubstr("silent ranks=[1], reason=Connection closed by peer"));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 15s);
  EXPECT_FALSE(has_left_something());
  leave();
});

const RankTest kStopsInACall(
    "stops_in_a_call",
    [](Connection& connection) {
      const Group all = world_of(connection);
      ASSERT_EQ(connection.carrier(), "shared memory");
      if (connection.rank() == 1) {
        connection.kv_store().set("process", cat(getpid()));
        barrier(all);
        raise(SIGSTOP);
        leave();
      }
      barrier(all);
      std::this_thread::sleep_for(100ms);
      const auto start = std::chrono::steady_clock::now();
      const std::string text = comm_error_of([&] { all_reduce(all, at::ones({3})); });
      EXPECT_THAT(text, HasSubstr("silent ranks=[1], reason=Timed out waiting 2000ms for the member at place 1"));
      EXPECT_LT(std::chrono::steady_clock::now() - start, 8s);
      kill(static_cast<pid_t>(std::stol(connection.kv_store().read("process").value())), SIGCONT);
      std::this_thread::sleep_for(200ms);  // it keeps the store
      leave();
    },
    /*deadline_s=*/2);

// A member that waits for others is not taken for dead, and the sum is right when they come.
const RankTest kWaitsLong("waits_long", [](Connection& connection) {
  const Group all = world_of(connection);
  if (connection.rank() == 1) std::this_thread::sleep_for(1s);
  EXPECT_TRUE(at::equal(all_reduce(all, at::ones({3})), at::full({3}, all.size(), at::kFloat)));
});

// Rank 0 cannot reserve the memory: all take TCP.
const RankTest kNoMemory("no_memory", [](Connection& connection) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 65'536, .rlim_max = before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  if (connection.rank() == 0) setrlimit(RLIMIT_FSIZE, &small);
  const Group all = world_of(connection);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_THAT(connection.carrier(),
              HasSubstr(connection.rank() == 0 ? "TCP: shared memory: it cannot have its size: File too large"
                                               : "TCP: the first member has no memory to share"));
  check_sizes(all, 1000, at::kLong);  // Gloo has an order of its own
});

TEST(SharedMemory, SizesOnTwoRanks) { run_on_ranks("shared_sizes", 2); }
TEST(SharedMemory, SizesOnFourRanks) { run_on_ranks("shared_sizes", 4); }
TEST(SharedMemory, SizesOnEightRanks) { run_on_ranks("shared_sizes", 8); }
TEST(SharedMemory, ManyCallsOnThreeRanks) { run_on_ranks("many_shared", 3); }
TEST(SharedMemory, AMemberThatEndsIsNamedAtOnce) { run_on_ranks("ends_in_a_call", 3); }
TEST(SharedMemory, AMemberThatStopsIsNamedAtTheDeadline) { run_on_ranks("stops_in_a_call", 2); }
TEST(SharedMemory, ALateMemberIsWaitedFor) { run_on_ranks("waits_long", 3); }
TEST(SharedMemory, WithoutMemoryAllTakeTcp) { run_on_ranks("no_memory", 3); }

}  // namespace
}  // namespace welkin::parallel
