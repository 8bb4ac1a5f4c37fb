// SPDX-License-Identifier: Apache-2.0
// Ranks as threads around a board in memory: who is missing, who differs and in what.
#include "parallel/comm/roll_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "memory_board.h"

namespace welkin::parallel {
namespace {

using namespace std::chrono_literals;  // NOLINT: literals
using testing::HasSubstr;

RollCall self(int64_t rank, int64_t world_size) {
  return {.rank = rank, .world_size = world_size, .host = cat("n", rank), .program = "aa", .configuration = "loop:\n  seed: 0\n"};
}

// What each rank's call ends with; "" when all is well.
std::vector<std::string> call(const std::vector<RollCall>& ranks, std::chrono::milliseconds patience) {
  MemoryBoard board;
  std::vector<std::string> ends(ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        call_roll(board, ranks[i], patience);
      } catch (const Error& error) {
        ends[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

TEST(RollCall, PassesWhenAllAreThereAndAlike) { EXPECT_THAT(call({self(0, 3), self(1, 3), self(2, 3)}, 10s), testing::Each("")); }

TEST(RollCall, NamesTheMissing) {
  const auto ends = call({self(0, 5), self(2, 5)}, 200ms);
  EXPECT_THAT(ends, testing::Each(HasSubstr("ranks did not arrive: missing=[1, 3, 4], world size=5, waited_s=0.2")));
}

TEST(RollCall, NamesTheLineThatDiffersOnAllRanks) {
  RollCall other = self(1, 2);
  other.configuration = "loop:\n  seed: 1\n";
  EXPECT_THAT(call({self(0, 2), other}, 10s),
              testing::Each(HasSubstr("rank 1 (n1) has another configuration than rank 0: 'seed: 0' and 'seed: 1'")));
}

TEST(RollCall, NamesAnotherProgram) {
  RollCall other = self(1, 2);
  other.program = "bb";
  EXPECT_THAT(call({self(0, 2), other}, 10s),
              testing::Each(HasSubstr("rank 1 (n1) runs another program than rank 0: hashes=aa and bb")));
}

}  // namespace
}  // namespace welkin::parallel
