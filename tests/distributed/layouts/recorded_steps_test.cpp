// SPDX-License-Identifier: Apache-2.0
// Recorded steps of two ranks equal their steps as they are, bit for bit. The recorder runs on a CPU: it keeps the work, calls to
// other ranks included, and calls it again.
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "core/error.h"
#include "parallel/comm/collectives.h"
#include "rank_processes.h"
#include "tiny_ranks.h"

namespace welkin::train {
namespace {

constexpr int64_t kRecordedSteps = 26;  // two full ones and a short one an epoch, eleven full ones to warm up

void expect_recorded_steps_equal(parallel::Connection& connection, const config::RunConfig& config) {
  RecorderCalls recorder_calls;
  TinySteps eager(config, nullptr, ranks_of(connection)), recorded(config, &recorder_calls, ranks_of(connection));
  for (int64_t step = 0; step < kRecordedSteps; ++step) {
    const double stop_requested = connection.rank() == 1 && step % 5 == 4 ? 1 : 0;
    const auto pending = static_cast<double>(3 * step + connection.rank());
    const StepRecord got = recorded.next(stop_requested, pending);
    expect_equal_steps(got, eager.next(stop_requested, pending), step);
    EXPECT_TRUE(at::equal(got.requests, at::tensor({step % 5 == 4 ? 1.0 : 0.0, 6.0 * static_cast<double>(step) + 1, 0.0, 0.0})))
        << step;
  }
  expect_equal_runs(recorded, eager);
  // Full steps are 0, 1, 3, 4, ...; the eleventh is step 15, and all from step 16 on are recorded: 16, 18, 19, 21, 22, 24, 25.
  EXPECT_EQ(recorder_calls.waits, 7U);
  EXPECT_EQ(recorder_calls.recorded, config.loop.micro_batch_size == 1 && config.parallel.tensor_parallel == 1 ? 2U : 1U);
}

config::RunConfig config_for(const ScratchFolder& root, int64_t micro_batch) {
  config::RunConfig config = tiny_config(root.path());
  config.optimizer.optimizer = "AdamW";
  config.optimizer.clip_norm = 0.5;
  config.loop.micro_batch_size = micro_batch;
  return config;
}

const parallel::RankTest kDataParallel("recorded_data_parallel", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = config_for(root, /*micro_batch=*/2);
  expect_recorded_steps_equal(connection, config);
  config.parallel.disable_broadcast_buffers = true;  // gradients live in the buckets
  expect_recorded_steps_equal(connection, config);
});

const parallel::RankTest kMicroBatches("recorded_micro_batches", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = config_for(root, /*micro_batch=*/1);
  config.precision.amp_mode = config::AmpMode::Fp16;
  config.precision.loss_scale_window = 5;
  expect_recorded_steps_equal(connection, config);
});

const parallel::RankTest kTensorParallel("recorded_tensor_parallel", [](parallel::Connection& connection) {
  const ScratchFolder root;
  config::RunConfig config = config_for(root, /*micro_batch=*/4);
  config.parallel.tensor_parallel = 2;
  config.parallel.sequence_parallel = true;
  expect_recorded_steps_equal(connection, config);
});

// A node that adds up gradients belongs to the stream on which it was made, and the Reducer keeps it: the steps' own stream,
// which a recording may not leave.
const parallel::RankTest kNodes("nodes_of_gradients", [](parallel::Connection& connection) {
  const ScratchFolder root;
  TinySteps steps(config_for(root, /*micro_batch=*/2), nullptr, ranks_of(connection));
  const auto has_node = [](const parallel::ParamRow& row) {
    return torch::autograd::impl::try_get_grad_accumulator(row.local) != nullptr;
  };
  const auto& rows = steps.setup().table.rows();
  EXPECT_TRUE(std::ranges::none_of(rows, has_node)) << "before the first step";
  steps.next();
  EXPECT_TRUE(std::ranges::all_of(rows, has_node)) << "kept from then on";
});

// A device that fails, or hangs until its end, is a failed call of the group: named, with what the others do.
const parallel::RankTest kFailedReplay("failed_replay", [](parallel::Connection& connection) {
  const parallel::Group world_group = ranks_of(connection).world_group;
  bool has_waited = false;
  parallel::wait_for_recorded(world_group, [&] {
    has_waited = true;
    EXPECT_EQ(connection.recorder().oldest_open()->name, "recorded_calls") << "which the watch looks at";
  });
  EXPECT_TRUE(has_waited);
  EXPECT_FALSE(connection.recorder().oldest_open().has_value());
  EXPECT_THAT([&] { parallel::wait_for_recorded(world_group, [] { throw std::runtime_error("the device is gone"); }); },
              ::testing::ThrowsMessage<CommError>(::testing::AllOf(
                  ::testing::HasSubstr("a collective failed: call=recorded_calls #2 of group world_group [0, 1]"),
                  ::testing::HasSubstr("all ranks made this call, reason=the device is gone"))));
});

TEST(RecordedStepsOfRanks, EqualStepsAsTheyAreWithDataParallelism) { parallel::run_on_ranks("recorded_data_parallel", 2); }
TEST(RecordedStepsOfRanks, EqualStepsAsTheyAreInMicroBatches) { parallel::run_on_ranks("recorded_micro_batches", 2); }
TEST(RecordedStepsOfRanks, EqualStepsAsTheyAreWithTensorParallelism) { parallel::run_on_ranks("recorded_tensor_parallel", 2); }
TEST(RecordedStepsOfRanks, MakeTheNodesOfGradientsThemselves) { parallel::run_on_ranks("nodes_of_gradients", 2); }
TEST(RecordedStepsOfRanks, ADeviceThatFailsIsAFailedCall) { parallel::run_on_ranks("failed_replay", 2); }

}  // namespace
}  // namespace welkin::train
