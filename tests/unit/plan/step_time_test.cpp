// SPDX-License-Identifier: Apache-2.0
// The parts of a step's time, against sums by hand.
#include "plan/step_time.h"

#include <gtest/gtest.h>

namespace welkin::plan {
namespace {

constexpr Machine kMachine{
    .flops_per_second = 1e12, .node_bytes_per_second = 100e9, .network_bytes_per_second = 10e9, .latency_s = 1e-5};

RunEstimate run_of(double flops, int64_t ranks) {
  RunEstimate run;
  run.world_size = ranks;
  run.step_flops = flops;
  return run;
}

TEST(StepTime, OfOneDeviceIsItsComputation) {
  RunEstimate run = run_of(3e12, 1);
  run.recompute_flops = 1e12;
  EXPECT_DOUBLE_EQ(step_time(run, kMachine).total(), 4);
  run.bucket_bytes = run.message_bytes = 1e8;
  EXPECT_DOUBLE_EQ(step_time(run, {.flops_per_second = 1e12}).total(), 4);  // without any link
}

TEST(StepTime, SmallPassesTakeWhatBeginningThemTakes) {
  RunEstimate run = run_of(1e6, 1);
  run.cost.layers.resize(50);
  run.micro_batches = 8;
  EXPECT_DOUBLE_EQ(step_time(run, kMachine).total(), 8 * 50 * 30e-6);
  run.step_flops = 1e12;
  EXPECT_DOUBLE_EQ(step_time(run, kMachine).total(), 1);
}

TEST(StepTime, ACollectiveTakesItsRing) {
  EXPECT_DOUBLE_EQ(kMachine.seconds(CollectiveKind::AllReduce, 4, false, 1e9), 6 * 1e-5 + 1.5 * 1e9 / 100e9);
  EXPECT_DOUBLE_EQ(kMachine.seconds(CollectiveKind::AllGather, 4, true, 1e9), 3 * 1e-5 + 0.75 * 1e9 / 10e9);
  EXPECT_EQ(kMachine.seconds(CollectiveKind::AllReduce, 1, false, 1e9), 0);
}

TEST(StepTime, WhatRunsBesideAddsOnlyWhatLastsLonger) {
  RunEstimate run = run_of(4e12, 4);  // one second
  run.collectives = {{.group = "tp", .kind = CollectiveKind::AllReduce, .ranks = 2, .calls = 10, .bytes = 2e10}};
  EXPECT_DOUBLE_EQ(step_time(run, kMachine).model, 10 * 2e-5 + 0.2);
  run.collectives[0].is_beside = true;  // a sixth of the computation hides it
  EXPECT_DOUBLE_EQ(step_time(run, kMachine).model, 10 * 2e-5 + 0.2 - 1.0 / 6);
  run.collectives[0].group = "spatial";
  EXPECT_EQ(step_time(run, kMachine).model, 0);
}

TEST(StepTime, GradientsHideBehindTheLastBackwardPass) {
  RunEstimate run = run_of(4e12, 4);
  run.reduced_bytes = 5e9, run.bucket_bytes = 1e8;
  EXPECT_DOUBLE_EQ(step_time(run, kMachine).gradients, 1e8 / 100e9);  // the last bucket
  run.exchange_leaves_node = true;
  EXPECT_DOUBLE_EQ(step_time(run, kMachine).gradients, 1e8 / 10e9);
  run.micro_batches = 4;  // of four backward passes only the last one exchanges
  EXPECT_DOUBLE_EQ(step_time(run, kMachine).gradients, 0.5 - 2.0 / 3 / 4);
  run.exchanges_each_pass = true;
  EXPECT_DOUBLE_EQ(step_time(run, kMachine).gradients, 1e8 / 10e9);
}

TEST(StepTime, APipelineIdlesAndSendsAtItsEnds) {
  RunEstimate run = run_of(4e12, 4);
  run.pipeline_parallel = 4, run.idle = 0.2, run.message_bytes = 1e8;
  const StepTime time = step_time(run, kMachine);
  EXPECT_DOUBLE_EQ(time.idle, 0.25);
  EXPECT_DOUBLE_EQ(time.stages, 6 * (1e-5 + 1e8 / 100e9));
}

}  // namespace
}  // namespace welkin::plan
