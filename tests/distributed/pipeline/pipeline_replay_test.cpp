// SPDX-License-Identifier: Apache-2.0
// A replay buffer on the ranks of a pipeline: those that look at the input have the states of one process, which the last one
// has made; others hold none.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "rank_processes.h"
#include "replay_days.h"

namespace welkin::train {
namespace {

constexpr int64_t kTrainedSteps = 40;

// Two micro-batches a step, as the last stage sees them: the second one first, which no schedule does and none may matter for.
void expect_states_of_one_process(const parallel::Group& ranks, const std::vector<int64_t>& readers) {
  const Days days;
  const ReplayLanes lanes{1, kBatch - 1};
  ReplayBuffer alone(days, plan_of(days), two_states(), lanes, {}, at::kCPU);
  ReplayBuffer piped(days, plan_of(days), two_states(), lanes, {}, at::kCPU, {ranks, readers});
  const bool is_last = ranks.group_rank() + 1 == ranks.size();
  const bool reads = is_last || std::ranges::find(readers, ranks.group_rank()) != readers.end();
  EXPECT_EQ(piped.holds_states(), reads);
  EXPECT_EQ(piped.bytes(), reads ? alone.bytes() : 0);
  int64_t fed = 0;
  for (int64_t step = 0; step < kTrainedSteps; ++step) {
    const data::Batch truth = batch_at(days, step, lanes), whole = batch_at(days, step, lanes);
    alone.feed(whole);
    alone.keep(whole, whole.input.narrow(1, 3, 1) * 2);
    const std::vector<ReplayLanes> micros{{lanes.first, 1}, {lanes.first + 1, lanes.count - 1}};
    std::vector<data::Batch> batches;
    for (const ReplayLanes& micro : micros) {
      piped.feed(batches.emplace_back(batch_at(days, step, micro)));
      const at::Tensor& wanted = reads ? whole.input : truth.input;
      EXPECT_TRUE(at::equal(batches.back().input, wanted.narrow(0, micro.first - lanes.first, micro.count))) << step;
    }
    fed += at::equal(whole.input, truth.input) ? 0 : 1;
    for (size_t micro = batches.size(); is_last && micro-- > 0;) {
      piped.keep(batches[micro], batches[micro].input.narrow(1, 3, 1) * 2);
    }
    piped.end_step();
    if (!reads) continue;
    EXPECT_TRUE(at::equal(piped.samples(), alone.samples())) << step;
  }
  EXPECT_GT(fed, kTrainedSteps / 2);
}

const parallel::RankTest kReplayed("pipeline_replay", [](parallel::Connection& connection) {
  std::vector<int64_t> all(static_cast<size_t>(connection.world_size()));
  std::iota(all.begin(), all.end(), 0);
  const parallel::Group ranks = connection.make_group("stages", {.ranks = all, .place = connection.rank()});
  expect_states_of_one_process(ranks, {0, 2});     // the first and the last stage
  expect_states_of_one_process(ranks, {0, 1, 2});  // of a model whose blocks all look at the input
  expect_states_of_one_process(ranks, {0});        // of one whose last stage keeps states to send them
});

TEST(PipelineReplay, HasTheStatesOfOneProcess) { parallel::run_on_ranks("pipeline_replay", 3, 60); }

}  // namespace
}  // namespace welkin::train
