// SPDX-License-Identifier: Apache-2.0
// What a step has sent, and how much of it is hidden.
#include "bench/step/traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "number_close.h"

namespace welkin::bench {
namespace {

using parallel::CallTotal;
using testing::HasSubstr;

TEST(Traffic, OnlyCallsSinceTheMarkCount) {
  const std::vector<CallTotal> before{{.group = "tp [0, 1]", .name = "all_reduce", .calls = 4, .bytes = 400, .seconds = 1},
                                      {.group = "dp [0, 2]", .name = "all_reduce", .calls = 2, .bytes = 20, .seconds = 1}};
  std::vector<CallTotal> now = before;
  now[0].calls += 6, now[0].bytes += 600, now[0].seconds += 0.5;
  now.push_back({.group = "tp [0, 1]", .name = "all_gather", .calls = 1, .bytes = 8, .seconds = 0.25});
  const std::vector<CallTotal> calls = calls_since(before, now);
  ASSERT_EQ(calls.size(), 2U);  // dp has made none
  EXPECT_EQ(calls[0].calls, 6);
  EXPECT_EQ(calls[0].bytes, 600);
  EXPECT_DOUBLE_EQ(calls[0].seconds, 0.5);
  EXPECT_EQ(calls[1].name, "all_gather");
}

// 2 steps: the exchange takes 80 ms alone whatever its record says, which lasts as long as the backward pass; tp's calls 10 ms
// each.
TEST(Traffic, HiddenIsWhatAStepDoesNotWaitFor) {
  Traffic traffic{.calls = {{.group = "dp [0, 1]", .name = "gradient exchange", .calls = 2, .bytes = 2'000'000, .seconds = 3},
                            {.group = "tp [0, 1]", .name = "all_reduce", .calls = 4, .bytes = 4000, .seconds = 0.04}},
                  .steps = 2,
                  .exchange_alone_s = 0.08};
  const Communication found = communication_of(traffic, /*step_s=*/0.525, /*no_comm_s=*/0.5);
  EXPECT_TRUE(tests::close(found.alone_s, 0.1, kFp64, 4));
  EXPECT_TRUE(tests::close(found.exposed_s, 0.025, kFp64, 64));
  EXPECT_TRUE(tests::close(found.hidden_fraction(), 0.75, kFp64, 256));
  EXPECT_EQ(communication_of(traffic, 0.4, 0.5).exposed_s, 0);  // noise
  EXPECT_TRUE(found.is_told);
  EXPECT_FALSE(communication_of(traffic, 0.4, 0.5).is_told);
  EXPECT_THAT(communication_text(traffic, communication_of(traffic, 0.4, 0.5)), testing::Not(testing::HasSubstr("hidden")));
  EXPECT_EQ(communication_of(traffic, 0.8, 0.5).hidden_fraction(), 0);                    // ranks wait for more than messages
  EXPECT_EQ(communication_of({.calls = {}, .steps = 2}, 0.8, 0.5).hidden_fraction(), 0);  // nothing is sent

  nlohmann::ordered_json written;
  add_communication_json(written, traffic, found);
  EXPECT_TRUE(tests::close(written["communication"]["calls"][0]["bytes_per_s"].get<double>(), 1e6 / 0.08, kFp64, 4));
  EXPECT_EQ(written["communication"]["calls"][1]["calls_per_step"], 2);
  EXPECT_THAT(communication_text(traffic, found), HasSubstr("hidden 75 %"));
}

// Calls of sharded ranks run beside the computation: their bytes count by what a call takes alone.
TEST(Traffic, CallsOfShardedRanksCountAsTheyAreAlone) {
  const Traffic traffic{.calls = {{.group = "dp [0, 1]", .name = "all_gather", .calls = 4, .bytes = 8'000'000, .seconds = 9},
                                  {.group = "dp [0, 1]", .name = "reduce_scatter", .calls = 2, .bytes = 4'000'000, .seconds = 9},
                                  {.group = "tp [0, 1]", .name = "all_gather", .calls = 2, .bytes = 1000, .seconds = 0.02}},
                        .steps = 2,
                        .shard_group = "dp [0, 1]",
                        .gather_s_per_byte = 1e-8,
                        .scatter_s_per_byte = 2e-8};
  EXPECT_TRUE(tests::close(communication_of(traffic, 0.6, 0.5).alone_s, 0.04 + 0.04 + 0.01, kFp64, 8));
}

}  // namespace
}  // namespace welkin::bench
