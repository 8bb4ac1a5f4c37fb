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
  return {.rank = rank, .world_size = world_size, .host = cat("n", rank), .program = "aa", .configuration = "loop:\n  seed: 0\n"};
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

TEST(RendezvousInfo, NamesAnotherProgram) {
  RendezvousInfo other = self(1, 2);
  other.program = "bb";
  EXPECT_THAT(call({self(0, 2), other}, 10s),
              testing::Each(HasSubstr("rank 1 (n1) runs another program than rank 0: hashes=aa and bb")));
}

}  // namespace
}  // namespace welkin::parallel
