// SPDX-License-Identifier: Apache-2.0
// What several steps of a model, members of an ensemble and a replay buffer add to the estimate of a run.
#include "plan/model_steps.h"

#include <gtest/gtest.h>

#include <utility>

#include "config/schema/batch_plan.h"
#include "plan/run_estimate.h"
#include "small_run.h"

namespace welkin::plan {
namespace {

TEST(ModelSteps, StepsOfTheModelTakeTheirWorkAndMemory) {
  const RunFacts facts = field_facts();
  config::RunConfig config = field_config();
  const RunEstimate one = estimate_run(config, facts);
  config.loss.multistep = 3;
  const RunEstimate three = estimate_run(config, facts);
  EXPECT_EQ(three.step_flops, 3 * one.step_flops);
  EXPECT_EQ(three.run_flops(), 3 * *one.run_flops());
  EXPECT_EQ(part(three, "activations"), 3 * part(one, "activations"));
  EXPECT_EQ(part(three, "batches in the loader"), 3 * 4 * 4 * (50 + 2 * 25));
  config.loss.multistep_recompute = true;
  const RunEstimate again = estimate_run(config, facts);
  EXPECT_EQ(part(again, "activations"), part(one, "activations") + 4 * 4 * 3 * 30);
  EXPECT_EQ(again.recompute_flops, 3 * 8 * facts.cost.forward_flops);
  config.loss.multistep_recompute = false;
  config.loss.multistep_gradient = config::MultistepGradient::Last;
  const RunEstimate last = estimate_run(config, facts);
  EXPECT_EQ(last.step_flops, one.step_flops + 2 * 8 * facts.cost.forward_flops);
  EXPECT_EQ(part(last, "activations"), part(one, "activations"));
}

// A rank holds so many passes, each of one step; where they run again, what each began with, and one pass at work.
TEST(ModelSteps, OfAPipelineTheScheduleSaysWhatIsHeld) {
  RunFacts facts = field_facts();
  config::RunConfig config = field_config();
  config.parallel.pipeline_parallel = 2;
  facts.world_size = 2;
  facts.stages.assign(2, {.parameters = 0.5, .trained = 0.5, .flops = 0.5});
  const RunEstimate one = estimate_run(config, facts);
  config.loss.multistep = 3;
  EXPECT_EQ(stage_passes(config).backward, 3);
  facts.stages[0].held = 5, facts.stages[1].held = 3;
  const RunEstimate three = estimate_run(config, facts);
  EXPECT_EQ(three.step_flops, 3 * one.step_flops);
  const double message = 4 * static_cast<double>(one.forward_batch) * 30;  // a copy of each input under way, and two messages
  const double pass = part(one, "activations") - (1 + 2) * message;
  EXPECT_EQ(part(three, "activations"), 5 * pass + (5 + 2) * message);
  config.loss.multistep_recompute = true;
  for (StageFacts& stage : facts.stages) stage.inputs_held = std::exchange(stage.held, 1);
  const RunEstimate again = estimate_run(config, facts);
  EXPECT_EQ(part(again, "activations"), pass + (5 + 2) * message);
  config.loss.multistep_gradient = config::MultistepGradient::Last;
  EXPECT_EQ(stage_passes(config).forward, 3);
  EXPECT_EQ(stage_passes(config).backward, 1);
}

// Of every pass that a rank holds, those of all members; where they run again, what each began with.
TEST(ModelSteps, OfAPipelineAPassHasAllMembers) {
  RunFacts facts = field_facts();
  config::RunConfig config = field_config();
  config.parallel.pipeline_parallel = 2;
  facts.world_size = 2;
  facts.stages.assign(2, {.parameters = 0.5, .trained = 0.5, .flops = 0.5, .held = 2});
  const RunEstimate one = estimate_run(config, facts);
  config.loss.ensemble_members = 3;
  const RunEstimate three = estimate_run(config, facts);
  EXPECT_EQ(three.step_flops, 3 * one.step_flops);
  EXPECT_EQ(part(three, "activations"), 3 * part(one, "activations"));
  config.loss.multistep = 2;
  config.loss.multistep_recompute = true;
  for (StageFacts& stage : facts.stages) stage.held = 1, stage.inputs_held = 4;
  const RunEstimate again = estimate_run(config, facts);
  const double message = 4 * static_cast<double>(one.forward_batch) * 30;  // as above, of a member
  const double pass = (part(one, "activations") - (2 + 2) * message) / 2;
  EXPECT_EQ(part(again, "activations"), pass + 3 * (4 + 2) * message);
}

TEST(ModelSteps, MembersOfAnEnsembleAreAllKept) {
  const RunFacts facts = field_facts();
  config::RunConfig config = field_config();
  const RunEstimate one = estimate_run(config, facts);
  config.loss.ensemble_members = 4;
  const RunEstimate four = estimate_run(config, facts);
  EXPECT_EQ(four.step_flops, 4 * one.step_flops);
  EXPECT_EQ(part(four, "activations"), 4 * part(one, "activations"));
  EXPECT_EQ(part(four, "batches in the loader"), part(one, "batches in the loader")) << "of one sample";
  config.loss.multistep = 3;
  config.loss.multistep_recompute = true;
  const RunEstimate again = estimate_run(config, facts);
  EXPECT_EQ(again.step_flops, 3 * 4 * one.step_flops);
  EXPECT_EQ(part(again, "activations"), part(one, "activations") + 4 * (4 * 4 * 3 * 30)) << "one pass runs again at a time";
  config.model.model = "unet3d", config.data.dataset = "nbody";
  EXPECT_EQ(estimate_run(config, facts).step_flops, one.step_flops) << "boxes have neither";
}

TEST(ModelSteps, AReplayBufferHoldsInputs) {
  const RunFacts facts = field_facts();
  config::RunConfig config = field_config();
  config.loop.device = config::DeviceChoice::Cpu;
  const RunEstimate without = estimate_run(config, facts);
  config.loss.replay_buffer = 5;
  const RunEstimate with = estimate_run(config, facts);
  const auto local = static_cast<double>(config::batch_plan(config).local);
  EXPECT_EQ(part(with, "replay buffer"), 5 * local * 4 * static_cast<double>(facts.input_values));
  EXPECT_EQ(with.memory_bytes(), without.memory_bytes() + with.replay_bytes);
  config.loop.device = config::DeviceChoice::Cuda;
  EXPECT_EQ(part(estimate_run(config, facts), "replay buffer"), 0) << "in the host's memory";
}

TEST(ModelSteps, ACurriculumCostsTheMeanOfItsParts) {
  config::RunConfig config = field_config();
  const RunEstimate one = estimate_run(config, small_facts());
  config.loss.multistep = std::vector<int64_t>{1, 2, 4};
  config.loss.multistep_iters = {50, 30};  // of 100
  const RunEstimate run = estimate_run(config, small_facts());
  EXPECT_EQ(run.step_flops, 4 * one.step_flops) << "of the last part";
  EXPECT_DOUBLE_EQ(*run.run_flops(), *one.run_flops() * (50 + 2 * 30 + 4 * 20) / 100);
}

}  // namespace
}  // namespace welkin::plan
