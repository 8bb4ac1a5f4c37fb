// SPDX-License-Identifier: Apache-2.0
// Ranks as threads around a store in memory: who is missing, who differs and in what.
#include "parallel/comm/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "memory_store.h"

namespace welkin::parallel {
namespace {

using namespace std::chrono_literals;  // NOLINT: literals
using testing::HasSubstr;

RendezvousInfo self(int64_t rank, int64_t world_size) {
  return {.rank = rank,
          .world_size = world_size,
          .local_size = 1,
          .num_nodes = world_size,
          .host = cat("n", rank),
          .program = "aa",
          .configuration = "loop:\n  seed: 0\n"};
}

// What each rank's call ends with; "" when all is well.
std::vector<std::string> call(const std::vector<RendezvousInfo>& ranks, std::chrono::milliseconds timeout) {
  MemoryStore kv_store;
  std::vector<std::string> ends(ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        rendezvous(kv_store, ranks[i], timeout);
      } catch (const Error& error) {
        ends[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

TEST(RendezvousInfo, PassesWhenAllAreThereAndAlike) {
  EXPECT_THAT(call({self(0, 3), self(1, 3), self(2, 3)}, 10s), testing::Each(""));
}

TEST(RendezvousInfo, NamesTheMissing) {
  const auto ends = call({self(0, 5), self(2, 5)}, 200ms);
  EXPECT_THAT(ends, testing::Each(HasSubstr("ranks did not arrive: missing=[1, 3, 4], world size=5, waited_s=0.2")));
}

TEST(RendezvousInfo, NamesTheLineThatDiffersOnAllRanks) {
  RendezvousInfo other = self(1, 2);
  other.configuration = "loop:\n  seed: 1\n";
  EXPECT_THAT(call({self(0, 2), other}, 10s),
              testing::Each(HasSubstr("rank 1 (n1) has another configuration than rank 0: 'seed: 0' and 'seed: 1'")));
}

// Two nodes, one started with -n 2 and the other with -n 1: none of those who wait is missing.
TEST(RendezvousInfo, NamesRanksOfAnotherNumber) {
  const auto on_node = [](int64_t rank, int64_t local_size) {
    RendezvousInfo info = self(rank, 2 * local_size);
    info.local_size = local_size;
    info.num_nodes = 2;
    return info;
  };
  const std::string remedy = "Give welkin launch the same -n and --nnodes on every node";
  EXPECT_THAT(
      call({on_node(0, 2), on_node(1, 2), on_node(1, 1)}, 10s),
      testing::Contains(testing::AllOf(HasSubstr("the ranks do not agree on their number: rank 1 (n1) is one of 2 ranks (on "
                                                 "its node 1, nodes 2), rank 0 is one of 4 ranks (on its node 2, nodes 2)"),
                                       HasSubstr(remedy)))
          .Times(3));
  EXPECT_THAT(call({on_node(0, 1), on_node(2, 2), on_node(3, 2)}, 10s),
              testing::Each(testing::AllOf(HasSubstr("is one of 4 ranks (on its node 2, nodes 2), rank 0 is one of 2 ranks"),
                                           HasSubstr(remedy))));
}

TEST(RendezvousInfo, NamesTwoProcessesOfOneRank) {
  RendezvousInfo other = self(1, 3);
  other.host = "n7";
  const auto ends = call({self(0, 3), self(1, 3), other}, 10s);
  EXPECT_THAT(ends, testing::Each(testing::ContainsRegex("two processes have the same rank: rank 1 is n[17] and n[17]")));
}

TEST(RendezvousInfo, NamesAnotherProgram) {
  RendezvousInfo other = self(1, 2);
  other.program = "bb";
  EXPECT_THAT(call({self(0, 2), other}, 10s),
              testing::Each(HasSubstr("rank 1 (n1) runs another program than rank 0: hashes=aa and bb")));
}

}  // namespace
}  // namespace welkin::parallel
