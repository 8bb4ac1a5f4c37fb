// SPDX-License-Identifier: Apache-2.0
// The text of every complaint about what a training step does: its parts, members, memory.
#include "complaints.h"
#include "config/validate/validate.h"

namespace welkin::config {
namespace {

using test::expect_complaints;

TEST(Validate, StepsOfTheModelHavePartsOfTheRun) {
  const LossConfig one = test::resolve_text(test::kVitFile, {"--multistep=2"}).config.loss;
  EXPECT_EQ(one.multistep.numbers, (std::vector<int64_t>{2}));
  const std::vector<std::string> parts{"--multistep=[1, 2, 4]", "--set=multistep_iters=[10, 5]", "--num_iters=20"};
  EXPECT_EQ(test::resolve_text(test::kVitFile, parts).config.loss.multistep.numbers, (std::vector<int64_t>{1, 2, 4}));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--multistep=[1, 2]"}),
              HasSubstr("every number of multistep but the last needs the length of its part: multistep=[1, 2] (--multistep), "
                        "multistep_epochs=[] (default). Write for instance multistep: [1, 2, 4] and multistep_epochs: [10, 5]"));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--multistep=2", "--set=multistep_epochs=[3]"}),
              HasSubstr("every number of multistep but the last needs the length of its part"));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--multistep=[1, 2]", "--set=multistep_epochs=[3]", "--set=multistep_iters=[3]"}),
              HasSubstr("the parts of the run have two lengths: multistep_epochs=[3]"));
  EXPECT_THAT(
      resolve_error(test::kVitFile, {"--multistep=[1, 2]", "--set=multistep_iters=[20]", "--num_iters=20"}),
      HasSubstr("the last part begins when the run has ended: multistep_iters=[20] (--set multistep_iters), num_iters=20"));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--multistep=0"}), HasSubstr("multistep element 0 must be at least 1: multistep=0"));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--multistep=[]"}), HasSubstr("multistep is empty"));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--multistep=two"}),
              HasSubstr("multistep wants an integer or a list of integers, is a string (two)"));
}

TEST(Validate, StepsOfTheModelDoNotGoWithEverything) {
  const std::vector<std::string> rollout{"--multistep=2", "--pipeline_parallel=2", "--set=input_noise=0.1"};
  EXPECT_EQ(test::resolve_text(test::kVitFile, rollout, 2).config.loss.multistep.most(), 2);
  EXPECT_THAT(resolve_error(test::kVitFile, {"--multistep=2", "--offload=activations", "--offload_path=/tmp"}),
              HasSubstr("what leaves the memory is read back for one step of the model: multistep=2"));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--multistep_recompute"}),
              HasSubstr("there is one step of the model, and so nothing to run again: multistep_recompute=true"));
  EXPECT_THAT(
      resolve_error(test::kVitFile, {"--set=multistep_gradient=last"}),
      HasSubstr(
          "there are no steps before the last one: multistep_gradient=last (--set multistep_gradient), multistep=1 (default)"));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--set=conservation=[tp]"}), HasSubstr("an entry is not channel=value: entry=tp"));
}

TEST(Validate, MembersOfAStepDifferAndAreScored) {
  const auto members = [](std::vector<std::string> flags, int64_t ranks = 1) {
    flags.insert(flags.begin(), "--set=ensemble_members=4");
    return resolve_error(test::kVitFile, flags, ranks);
  };
  EXPECT_THAT(members({"--set=loss=mae", "--set=dropout=0"}),
              HasSubstr("nothing makes the members of the ensemble differ: ensemble_members=4 (--set ensemble_members), "
                        "input_noise=0.0 (default)"));
  EXPECT_THAT(members({"--set=loss=mse", "--set=dropout=0.1"}), HasSubstr("which is made of absolute errors"));
  EXPECT_THAT(members({"--set=loss=mae", "--set=dropout=0.1", "--set=conservation=[t2m=1]"}),
              HasSubstr("terms of the loss are those of one prediction: ensemble_members=4 (--set ensemble_members), "
                        "conservation=['t2m=1'] (--set conservation)"));
  EXPECT_THAT(members({"--set=loss=mae", "--set=dropout=0.1", "--set=spectral_weight=1"}), HasSubstr("spectral_weight=1"));
  EXPECT_THAT(members({"--set=loss=mae", "--set=dropout=0.1", "--offload=activations", "--offload_path=/tmp"}),
              HasSubstr("what leaves the memory is read back for one pass"));
  const std::vector<std::string> piped{"--set=ensemble_members=4", "--set=loss=mae", "--set=input_noise=0.1",
                                       "--pipeline_parallel=2"};
  EXPECT_EQ(test::resolve_text(test::kVitFile, piped, 2).config.loss.ensemble_members, 4);
}

TEST(Validate, AReplayBufferHasOneStepAtATime) {
  const auto replay = [](std::vector<std::string> flags, int64_t ranks = 1) {
    flags.insert(flags.begin(), "--set=replay_buffer=8");
    return resolve_error(test::kVitFile, flags, ranks);
  };
  EXPECT_EQ(test::resolve_text(test::kVitFile, {"--set=replay_buffer=8", "--set=replay_steps=4"}).config.loss.replay_steps, 4);
  EXPECT_THAT(replay({"--multistep=2"}), HasSubstr("a replay buffer takes the place of several steps at once: replay_buffer=8 "
                                                   "(--set replay_buffer), multistep=2 (--multistep)"));
  EXPECT_THAT(replay({"--set=datasets=[a=1]"}), HasSubstr("samples that are drawn by weight do not follow each other"));
  EXPECT_EQ(test::resolve_text(test::kVitFile, {"--set=replay_buffer=8", "--pipeline_parallel=2"}, 2).config.loss.replay_buffer,
            8);
  EXPECT_THAT(replay({"--set=cuda_graph=true"}), HasSubstr("a recorded step does not show its predictions"));
  EXPECT_THAT(replay({"--set=replay_steps=1"}), HasSubstr("replay_steps must be at least 2"));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--set=replay_steps=4"}),
              HasSubstr("there is no replay buffer: replay_buffer=0 (default), replay_steps=4"));
}

TEST(Validate, ActivationCheckpointingNeedsBlocks) {
  EXPECT_THAT(resolve_error(test::kVitFile, {"--activation_checkpointing=block"}), HasSubstr("Nearest: blocks"));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--activation_checkpointing_blocks=2"}),
              HasSubstr("blocks to checkpoint without what of them: activation_checkpointing_blocks=2 "
                        "(--activation_checkpointing_blocks), activation_checkpointing=none (default). Say"));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--activation_checkpointing=mlp", "--activation_checkpointing_blocks=13"}),
              HasSubstr("more blocks than the model has: activation_checkpointing_blocks=13 "
                        "(--activation_checkpointing_blocks), depth=12"));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--activation_checkpointing=budget:4", "--activation_checkpointing_blocks=2"}),
              HasSubstr("blocks to checkpoint without what of them: activation_checkpointing_blocks=2"));
  EXPECT_THAT(resolve_error(test::kUnetFile, {"--activation_checkpointing=attention"}),
              HasSubstr("the U-Net has neither attention nor an MLP: activation_checkpointing=attention "
                        "(--activation_checkpointing), model=unet3d"));
  EXPECT_EQ(test::resolve_text(test::kVitFile, {"--activation_checkpointing=blocks", "--activation_checkpointing_blocks=12"})
                .config.loop.activation_checkpointing_blocks,
            12);
}

TEST(Validate, OffloadNeedsAPlaceAndASteppedRun) {
  expect_complaints(
      test::kVitFile,
      {
          {{"offload=[optimizer]", "device=cpu"},
           "a run on a CPU needs a folder for what it offloads: offload=[optimizer] (--set offload). Name one"},
          {{"offload=[parameters]"},
           "weights leave the memory for a file alone: offload=[parameters] (--set offload). Name a folder"},
          {{"offload=[parameters]", "offload_path=/scratch", "shard=optimizer"},
           "weights that every rank gathers whole stay in memory, shard is optimizer or gradients: offload=[parameters] (--set "
           "offload). "
           "Say --shard full"},
          {{"offload=[optimizer]", "offload_path=/scratch", "cuda_graph=true"}, "a recorded step cannot read from a disk"},
          {{"offload=[activations]", "offload_path=/scratch", "activation_checkpointing=budget:4"},
           "a budget counts activations that stay in memory, activation_checkpointing=budget: offload=[activations]"},
          {{"offload_path=/scratch"}, "nothing is offloaded: offload_path=/scratch (--set offload_path). Say what"},
          {{"offload=[states]"}, "offload element 0 is none of optimizer, activations, parameters"},
          {{"offload_buffer_mib=0"}, "offload_buffer_mib must be at least 0.01"},
      });
  const auto kept = [](const char* flag) { return test::resolve_text(test::kVitFile, {flag}).config.backend.offload; };
  EXPECT_EQ(kept("--offload=optimizer,activations"), (std::vector<std::string>{"optimizer", "activations"}));
}

TEST(Validate, ActivationCheckpointingTakesAPatternOrABudget) {
  const auto resolved = [](const char* file, const std::string& value) {
    return test::resolve_text(file, {"--activation_checkpointing=" + value}).config.loop.activation_checkpointing;
  };
  EXPECT_EQ(resolved(test::kVitFile, "pattern:blocks\\.[0-3]").pattern, "blocks\\.[0-3]");
  EXPECT_EQ(resolved(test::kUnetFile, "budget:1.5").budget_gib, 1.5);
  EXPECT_EQ(resolved(test::kUnetFile, "blocks").part, CheckpointedPart::Blocks);
  EXPECT_THAT(resolve_error(test::kVitFile, {"--activation_checkpointing=pattern:("}),
              HasSubstr("activation_checkpointing wants a POSIX extended regular expression, is ("));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--activation_checkpointing=budget:much"}),
              HasSubstr("activation_checkpointing wants budget:GIB with a number above 0, is budget:much"));
}

TEST(Validate, MicroBatchSizeIsANumberOrAuto) {
  EXPECT_TRUE(test::resolve_text(test::kVitFile, {"--micro_batch_size=auto"}).config.loop.micro_batch_size.is_auto);
  EXPECT_EQ(test::resolve_text(test::kVitFile, {"--micro_batch_size=2"}).config.loop.micro_batch_size.samples, 2);
  EXPECT_THAT(resolve_error(test::kVitFile, {"--micro_batch_size=most"}),
              HasSubstr("micro_batch_size wants an integer or auto, is a string (most)"));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--micro_batch_size=-1"}), HasSubstr("micro_batch_size"));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--micro_batch_size=auto", "--rank_invariant"}),
              HasSubstr("rank_invariant divides the batch itself: micro_batch_size=auto (--micro_batch_size)"));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--micro_batch_size=auto", "--activation_checkpointing=budget:4"}),
              HasSubstr("two keys would choose by memory at once: micro_batch_size=auto"));
}

}  // namespace
}  // namespace welkin::config
