// SPDX-License-Identifier: Apache-2.0
#include "plan/run_estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "plan/roofline.h"
#include "plan/state_bytes.h"
#include "small_run.h"

namespace welkin::plan {
namespace {

TEST(RunEstimate, CountsFloat32OnOneReplicaOfTwo) {
  RunFacts facts = small_facts();
  facts.world_size = 2;
  const RunEstimate run = estimate_run(small_config(), facts);
  EXPECT_EQ(part(run, "weights"), 4000);
  EXPECT_EQ(part(run, "gradients"), 4000);
  EXPECT_EQ(part(run, "optimizer"), 8000);
  EXPECT_EQ(part(run, "activations"), 4 * 4 * (10 + 100 + 200 + 400 + 80));
  EXPECT_EQ(part(run, "batches in the loader"), 3 * 4 * 4 * 50);
  EXPECT_EQ(part(run, "buckets of gradients"), 0);  // one pass: each gradient goes into its bucket
  EXPECT_EQ(run.reduced_bytes, 4000);
  EXPECT_EQ(run.step_flops, 8 * 3e9);
  EXPECT_EQ(run.run_flops(), 100 * 8 * 3e9);
  EXPECT_EQ(run.device_hours(), std::nullopt);
}

TEST(RunEstimate, GradientsOfSeveralPassesAddUpBesideTheBuckets) {
  RunFacts facts = small_facts();
  facts.world_size = 2;
  config::RunConfig config = small_config();
  config.loop.micro_batch_size = 2;
  EXPECT_EQ(part(estimate_run(config, facts), "buckets of gradients"), 4000);
  config.parallel.disable_broadcast_buffers = true;
  EXPECT_EQ(part(estimate_run(config, facts), "buckets of gradients"), 0);
}

TEST(RunEstimate, FrozenParametersHaveNeitherGradientNorState) {
  RunFacts facts = small_facts();
  facts.world_size = 2;
  const RunEstimate all = estimate_run(small_config(), facts);
  facts.frozen_parameters = 400;
  RunEstimate run = estimate_run(small_config(), facts);
  EXPECT_EQ(part(run, "weights"), 4000);
  EXPECT_EQ(part(run, "gradients"), 2400);
  EXPECT_EQ(part(run, "optimizer"), 4800);
  EXPECT_EQ(part(run, "buckets of gradients"), 0);
  EXPECT_EQ(run.reduced_bytes, 2400);
  EXPECT_EQ(part(run, "activations"), part(all, "activations"));
  config::RunConfig config = small_config();
  config.parallel.tensor_parallel = 2;
  EXPECT_EQ(part(estimate_run(config, facts), "gradients"), 4 * 600 * 0.6);
}

TEST(RunEstimate, BlocksShareActivationsAndBatches) {
  RunFacts facts = small_facts();
  const RunEstimate whole = estimate_run(small_config(), facts);
  config::RunConfig config = small_config();
  config.parallel.spatial = {.d = 1, .h = 2, .w = 2};
  facts.world_size = 4;
  RunEstimate run = estimate_run(config, facts);
  EXPECT_DOUBLE_EQ(part(run, "batches in the loader"), part(whole, "batches in the loader") / 4);
  EXPECT_EQ(part(run, "activations"), 4 * 4 * ((10 + 100 + 200 + 400) / 4.0 + 80));  // all_gather keeps the keys of all blocks
  config.parallel.context_mode = config::ContextMode::Ring;
  run = estimate_run(config, facts);
  EXPECT_EQ(part(run, "activations"), part(whole, "activations") / 4);
  EXPECT_EQ(part(run, "weights"), part(whole, "weights"));
  EXPECT_EQ(run.reduced_bytes, 2 * 4000 * 3 / 4);  // every gradient is a part of a sum over the blocks
  config.parallel.shard = config::ShardStage::Full;
  EXPECT_EQ(part(estimate_run(config, facts), "weights"), 1000);
}

TEST(RunEstimate, MixedPrecisionAndLayoutsTakeTheirShare) {
  config::RunConfig config = small_config();
  config.precision.amp_mode = config::AmpMode::Bf16;
  config.parallel.tensor_parallel = 2;
  config.parallel.context_parallel = 2;
  config.loop.micro_batch_size = 1;
  RunFacts facts = small_facts();
  facts.world_size = 4;
  facts.flops_per_second = 1e12;
  RunEstimate run = estimate_run(config, facts);
  EXPECT_EQ(part(run, "weights"), 4 * 600);
  EXPECT_EQ(part(run, "weights in 16 bits"), 2 * 600);
  EXPECT_EQ(part(run, "activations"), 2 * 10 + 4 * 50 + 2 * 100 + 2 * 100 + 2 * 40);
  EXPECT_EQ(part(run, "buckets of gradients"), 4 * 600);  // one exchange goes over the ranks of a sample, too
  EXPECT_EQ(run.reduced_bytes, 2 * 4 * 600 / 2);
  EXPECT_DOUBLE_EQ(run.step_seconds.value_or(0), 8 * 3e9 / 4e12);
  EXPECT_DOUBLE_EQ(run.device_hours().value_or(0), 4 * 100 * 8 * 3e9 / 4e12 / 3600);
  config.parallel.sequence_parallel = true;
  config.parallel.context_mode = config::ContextMode::Ring;
  run = estimate_run(config, facts);
  EXPECT_EQ(part(run, "activations"), 2 * 10 + 4 * 25 + 2 * 50 + 2 * 100 + 2 * 20);
}

// Of `ranks` that have as much of the model each.
std::vector<StageFacts> even_stages(int64_t ranks, std::vector<double> held) {
  std::vector<StageFacts> stages;
  const double part = 1 / static_cast<double>(ranks);
  for (const double micros : held) stages.push_back({.parameters = part, .trained = part, .flops = part, .held = micros});
  return stages;
}

// Two stages of 500 parameters, of which 100 are the same; each has the sum of both copies' gradients, once a step.
TEST(RunEstimate, CopiesOfTiedWeightsAreSummed) {
  config::RunConfig config = small_config();
  config.parallel.pipeline_parallel = 2;
  RunFacts facts = small_facts();
  facts.world_size = 2;
  facts.stages = even_stages(2, {2, 1});
  for (StageFacts& stage : facts.stages) stage.tied = 2 * 0.5 * 100;
  EXPECT_EQ(estimate_run(config, facts).reduced_bytes, 4 * 100);
  facts.world_size = 4;  // and all 500 with the other replica
  EXPECT_EQ(estimate_run(config, facts).reduced_bytes, 4 * 100 + 2 * 4 * 500 / 2);
  config.parallel.shard = config::ShardStage::Optimizer;  // each replica's half of a copy
  EXPECT_EQ(estimate_run(config, facts).reduced_bytes, 4 * 100 / 2 + 2 * 4 * 500 / 2);
  config.parallel.shard = config::ShardStage::None;
  config.parallel.noddp = true;
  EXPECT_EQ(estimate_run(config, facts).reduced_bytes, 4 * 100);
}

// Four stages; four micro-batches of two samples, then eight of one.
TEST(RunEstimate, APipelineCutsTheStateAndIdles) {
  config::RunConfig config = small_config();
  config.loop.local_batch_size = 8;
  config.loop.micro_batch_size = 2;
  config.parallel.pipeline_parallel = 4;
  RunFacts facts = small_facts();
  facts.world_size = 4;
  facts.flops_per_second = 1e12;
  facts.stages = even_stages(4, {4, 3, 2, 1});
  facts.idle = 3.0 / 7;
  RunEstimate run = estimate_run(config, facts);
  EXPECT_EQ(run.stage, 0);
  EXPECT_EQ(part(run, "weights"), 1000);
  EXPECT_EQ(part(run, "optimizer"), 2000);
  EXPECT_EQ(part(run, "buckets of gradients"), 0);
  const double sample = 4 * (10 + 100 + 200 + 400 + 80);
  EXPECT_EQ(part(run, "activations"), 2 * sample / 4 * 4);
  EXPECT_DOUBLE_EQ(run.step_seconds.value_or(0), 8 * 3e9 / 4e12 / (4.0 / 7));
  config.loop.micro_batch_size = 1;
  EXPECT_EQ(part(estimate_run(config, facts), "activations"), sample / 4 * 4);
  config.parallel.pipeline_schedule = config::PipelineSchedule::GPipe;
  facts.stages = even_stages(4, {8, 8, 8, 8});
  EXPECT_EQ(part(estimate_run(config, facts), "activations"), sample / 4 * 8);
  facts.input_values = 30;  // of which each pass under way has a copy; a message has come and one is posted
  EXPECT_EQ(part(estimate_run(config, facts), "activations"), sample / 4 * 8 + 4 * 30 * (8 + 2));
}

// The deep half of a U-Net has nearly all weights and few activations: the memory is that of the rank with the larger sum.
TEST(RunEstimate, TheRankOfAPipelineThatNeedsMostIsTheOneShown) {
  config::RunConfig config = small_config();
  config.parallel.pipeline_parallel = 2;
  config.loop.micro_batch_size = 2;
  RunFacts facts = small_facts();
  facts.world_size = 4;
  facts.stages = {{.parameters = 0.05, .trained = 0.05, .flops = 0.6, .held = 2},
                  {.parameters = 0.95, .trained = 0.9, .flops = 0.4, .held = 1}};
  RunEstimate run = estimate_run(config, facts);
  const double sample = 4 * (10 + 100 + 200 + 400 + 80);
  EXPECT_EQ(run.stage, 1);
  EXPECT_EQ(part(run, "weights"), 3800);
  EXPECT_EQ(part(run, "gradients"), 3600);
  EXPECT_EQ(part(run, "activations"), 2 * sample * 0.4);
  EXPECT_EQ(run.reduced_bytes, 3600);  // by the rank that has most, between two replicas
  facts.memory->kept = {.stream = 10000};
  run = estimate_run(config, facts);
  EXPECT_EQ(run.stage, 0);
  EXPECT_EQ(part(run, "activations"), 2 * (4 * 10000) * 0.6 * 2);
  EXPECT_EQ(run.reduced_bytes, 3600);
}

TEST(RunEstimate, TrainingStateThatIsSharedOutTakesItsPart) {
  config::RunConfig config = small_config();
  RunFacts facts = small_facts();
  facts.world_size = 4;
  facts.cost.layers = {{.name = "embed", .parameters = 190},
                       {.name = "norm", .parameters = 10},  // too small for a gather of its own: it stays for the whole pass
                       {.name = "blocks.0.fc1", .parameters = 300},
                       {.name = "blocks.0.fc2", .parameters = 100},
                       {.name = "blocks.1.fc1", .parameters = 300},
                       {.name = "blocks.1.fc2", .parameters = 100}};
  // Gradients and what travels are those of the worst moment: all are there, or a block's are packed (backward_memory_test.cpp).
  const auto expect = [&](config::ShardStage stage, std::array<double, 4> held, double reduced) {
    config.parallel.shard = stage;
    const RunEstimate run = estimate_run(config, facts);
    EXPECT_EQ(part(run, "weights"), held[0]);
    EXPECT_EQ(part(run, "gradients"), held[1]);
    EXPECT_EQ(part(run, "gradients under way"), held[2]);
    EXPECT_EQ(part(run, "optimizer"), held[3]);
    EXPECT_EQ(part(run, "buckets of gradients"), 0);
    EXPECT_EQ(part(run, "weights at work"), stage == config::ShardStage::Full ? 4 * (2 * 400 + 10) : 0);
    EXPECT_EQ(run.reduced_bytes, reduced);
  };
  expect(config::ShardStage::Optimizer, {4000, 4000, 0, 2000}, 2 * 3000);
  expect(config::ShardStage::Gradients, {4000, 4000, 0, 2000}, 2 * 3000);
  expect(config::ShardStage::Full, {1000, 1600, 2000 + 1600, 2000}, 3 * 3000 - 30);
  config.loop.micro_batch_size = 1;  // four passes: whole gradients stand from one to the next, or pieces of them
  expect(config::ShardStage::Optimizer, {4000, 4000 + 1200, 0, 2000}, 2 * 3000);
  expect(config::ShardStage::Gradients, {4000, 1000 + 4000, 4000, 2000}, 5 * 3000);
  expect(config::ShardStage::Full, {1000, 1000 + 1600, 2000 + 1600, 2000}, 12 * 3000 - 4 * 30);
  config.parallel.shard_group = "2";
  expect(config::ShardStage::Full, {2000, 2000 + 1600, 2400 + 1600, 4000}, 12 * 2000 - 4 * 20);
  config.parallel.reshard_after_forward = false;  // gathered once for all passes
  EXPECT_EQ(estimate_run(config, facts).reduced_bytes, 5 * 2000);
}

// Two ranks share out the state of each of two stages.
TEST(RunEstimate, RanksOfAStageShareItsStateOut) {
  config::RunConfig config = small_config();
  config.loop.local_batch_size = 4;
  config.loop.micro_batch_size = 1;
  config.parallel.pipeline_parallel = 2;
  config.parallel.shard = config::ShardStage::Optimizer;
  RunFacts facts = small_facts();
  facts.world_size = 4;
  facts.stages = even_stages(2, {2, 1});
  facts.cost.layers = {{.name = "blocks.0", .parameters = 500}, {.name = "blocks.1", .parameters = 500}};
  RunEstimate run = estimate_run(config, facts);
  EXPECT_EQ(part(run, "weights"), 2000);
  EXPECT_EQ(part(run, "gradients"), 2000);  // of earlier passes, beside the activations of two
  EXPECT_EQ(part(run, "optimizer"), 2000);
  EXPECT_EQ(run.reduced_bytes, 2 * 2000 / 2);
  config.parallel.shard = config::ShardStage::Gradients;
  run = estimate_run(config, facts);
  EXPECT_EQ(part(run, "gradients"), 1000 + 2000);  // pieces of earlier passes, and whole ones before they are sent
  EXPECT_EQ(run.reduced_bytes, (4 + 1) * 2000 / 2);
  config.parallel.shard = config::ShardStage::Full;
  EXPECT_EQ(part(estimate_run(config, facts), "weights"), 1000);
  config.parallel.spatial = {.d = 1, .h = 1, .w = 2};  // and the two blocks of its samples
  facts.world_size = 8;
  EXPECT_EQ(part(estimate_run(config, facts), "weights"), 500);
}

// Of a pipeline's first rank two parts stay, of those of all micro-batches under way.
TEST(RunEstimate, StagesLeaveTheMemoryToo) {
  config::RunConfig config = small_config();
  config.loop.local_batch_size = 4;
  config.loop.micro_batch_size = 1;
  config.parallel.pipeline_parallel = 2;
  config.backend.offload_buffer_mib = 0;
  RunFacts facts = small_facts();
  facts.world_size = 2;
  facts.stages = even_stages(2, {2, 1});
  facts.cost.layers = {{.name = "blocks.0", .parameters = 250},
                       {.name = "blocks.1", .parameters = 250},
                       {.name = "blocks.2", .parameters = 250},
                       {.name = "blocks.3", .parameters = 250}};
  const double all = part(estimate_run(config, facts), "activations");
  config.backend.offload = {"activations"};
  EXPECT_DOUBLE_EQ(part(estimate_run(config, facts), "activations"), all / 2);  // two of two parts of two micro-batches
  config.backend.offload = {"parameters"};
  EXPECT_EQ(part(estimate_run(config, facts), "weights"), 2000);
}

TEST(RunEstimate, WeightsThatAreGatheredIn16BitsTravelAsHalf) {
  config::RunConfig config = small_config();
  RunFacts facts = small_facts();  // 1000 parameters
  facts.world_size = 4;
  facts.cost.layers = {{.name = "embed", .parameters = 200}, {.name = "fc", .parameters = 800, .weights = 600}};
  config.parallel.shard_gather_dtype = config::GatherDtype::Bf16;
  const auto sent = [&](config::ShardStage stage) {
    config.parallel.shard = stage;
    return estimate_run(config, facts).reduced_bytes;
  };
  constexpr double kGathered = 2 * 600 + 4 * 400, kReduced = 4 * 1000;
  EXPECT_DOUBLE_EQ(sent(config::ShardStage::None), 2 * kReduced * 3 / 4);
  EXPECT_DOUBLE_EQ(sent(config::ShardStage::Optimizer), (kReduced + kGathered) * 3 / 4);
  EXPECT_DOUBLE_EQ(sent(config::ShardStage::Full), (kReduced + 2 * kGathered) * 3 / 4);
}

// States travel once there and back in a step, activations in each of four passes; of four parts two are at work.
TEST(RunEstimate, WhatIsOffloadedLeavesTheMemoryAndTravels) {
  config::RunConfig config = small_config();
  RunFacts facts = small_facts();
  for (const char* layer : {"blocks.0.fc1", "blocks.1.fc1", "blocks.2.fc1", "blocks.3.fc1"}) {
    facts.cost.layers.push_back({.name = layer, .parameters = 200});
  }
  config.loop.micro_batch_size = 1;
  config.loop.device = config::DeviceChoice::Cpu;
  config.optimizer.ema_decay = 0.9;
  const double activations = part(estimate_run(config, facts), "activations");
  config.backend.offload = {"optimizer"};
  config.backend.offload_path = "/scratch";
  config.backend.offload_buffer_mib = 0.001;
  RunEstimate run = estimate_run(config, facts);
  EXPECT_EQ(part(run, "optimizer"), 0);
  EXPECT_EQ(part(run, "moving average of weights"), 0);
  EXPECT_EQ(part(run, "activations"), activations);
  EXPECT_DOUBLE_EQ(part(run, "buffers of the offload"), 2 * 3 * 1048.576);
  EXPECT_EQ(run.offloaded_bytes, 8000 + 4000);
  EXPECT_EQ(run.disk_bytes, 2 * 12000);
  config.backend.offload = {"optimizer", "activations"};
  run = estimate_run(config, facts);
  EXPECT_EQ(part(run, "activations"), activations / 2);
  EXPECT_EQ(run.offloaded_bytes, 12000 + activations / 2);
  EXPECT_EQ(run.disk_bytes, 2 * 12000 + 4 * activations);
  config.backend.offload = {"parameters"};  // of four equal units two stay, and the fifth of the weights that is in none
  run = estimate_run(config, facts);
  EXPECT_EQ(part(run, "weights"), 4 * 600);
  EXPECT_EQ(run.offloaded_bytes, 1600);
  EXPECT_EQ(run.disk_bytes, 1600 * 2 * (4 + 1));
  EXPECT_EQ(part(run, "buffers of the offload"), 0);
  config.backend.offload = {"optimizer", "activations"};
  config.loop.device = config::DeviceChoice::Cuda;
  config.backend.offload_path = "";
  run = estimate_run(config, facts);
  EXPECT_EQ(part(run, "buffers of the offload"), 0);
  EXPECT_EQ(run.disk_bytes, 0);
}

TEST(RunEstimate, ActivationCheckpointingHoldsOnePartAndRunsAllAgain) {
  RunFacts facts = small_facts();
  const double before = part(estimate_run(small_config(), facts), "activations");
  facts.flops_per_second = 1e12;
  const RunEstimate plain = estimate_run(small_config(), facts);
  facts.memory->again = {.stream = 5, .inner = 20};
  facts.memory->recompute_flops = 1e9;
  const RunEstimate run = estimate_run(small_config(), facts);
  EXPECT_EQ(part(run, "activations"), before + 4 * 4 * 25);
  EXPECT_EQ(run.step_flops, plain.step_flops) << "of the model";
  EXPECT_EQ(run.recompute_flops, 8 * 1e9);
  EXPECT_DOUBLE_EQ(run.step_seconds.value_or(0), plain.step_seconds.value_or(0) * 4 / 3);
  EXPECT_DOUBLE_EQ(run.run_seconds.value_or(0), plain.run_seconds.value_or(0) * 4 / 3);
}

TEST(RunEstimate, OptimizersKeepTheirStates) {
  RunFacts facts = small_facts();
  facts.optimizer_states = 1;
  EXPECT_EQ(part(estimate_run(small_config(), facts), "optimizer"), 4000);
  facts.optimizer_states = 0;
  EXPECT_EQ(part(estimate_run(small_config(), facts), "optimizer"), 0);
}

TEST(RunEstimate, AModelOfAPlugInHasNoActivations) {
  RunFacts facts = small_facts();
  facts.memory.reset();
  const RunEstimate run = estimate_run(small_config(), facts);
  EXPECT_EQ(part(run, "activations"), 0);
  EXPECT_EQ(run.memory_bytes(), 4000 + 4000 + 8000 + 3 * 4 * 4 * 50);
}

}  // namespace
}  // namespace welkin::plan
