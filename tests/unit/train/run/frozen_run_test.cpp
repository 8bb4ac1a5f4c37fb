// SPDX-License-Identifier: Apache-2.0
// Runs whose parameters are frozen in part.
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tiny_run.h"
#include "train/checkpoint/checkpoint.h"

namespace welkin::train {
namespace {

using ::testing::HasSubstr;

config::RunConfig frozen_config(const std::filesystem::path& root, std::vector<std::string> patterns) {
  config::RunConfig config = tiny_config(root);
  config.optimizer.optimizer = "AdamW";
  config.optimizer.weight_decay = 0.1;
  config.optimizer.freeze = std::move(patterns);
  config.loop.checkpoint_interval = 1;
  config.loop.keep_checkpoints = 20;
  return config;
}

Checkpoint checkpoint_at(const TinyOutcome& outcome, int64_t step) {
  return Checkpoint(outcome.run.folder / "checkpoints" / ("step_" + std::to_string(step)));
}

TEST(Freeze, KeepsValuesAndNoStates) {
  const ScratchFolder folder;
  const TinyOutcome outcome = run_tiny(frozen_config(folder.path(), {"patch_embed.*", "blocks.0.*"}), {});
  EXPECT_THAT(outcome.log, ::testing::ContainsRegex("Frozen: [0-9]+ of [0-9]+ tensors with [0-9]+ of [0-9]+ parameters "
                                                    "\\(patch_embed\\.\\*: 2, blocks\\.0\\.\\*: [0-9]+\\)"));
  const Checkpoint first = checkpoint_at(outcome, 1), last = checkpoint_at(outcome, 13);
  int frozen = 0, trained = 0;
  for (const std::string& name : first.index().parameters) {
    const bool is_frozen = name.starts_with("patch_embed.") || name.starts_with("blocks.0.");
    EXPECT_EQ(at::equal(first.read(name), last.read(name)), is_frozen) << name;
    EXPECT_EQ(last.contains("optimizer.exp_avg." + name), !is_frozen) << name;
    ++(is_frozen ? frozen : trained);
  }
  EXPECT_GT(frozen, 2);
  EXPECT_GT(trained, 2);
}

TEST(Freeze, ResumesBitForBit) {
  const ScratchFolder whole, cut;
  config::RunConfig config = frozen_config(whole.path(), {"blocks.1.*", "*.bias"});
  const TinyOutcome reference = run_tiny(config, {});
  config.output.expdir = cut.path().string();
  TinyData data;
  data.interrupt_at = 35;
  EXPECT_FALSE(run_tiny(config, data).run.completed);
  config.loop.resume = true;
  const TinyOutcome resumed = run_tiny(config, {});
  const Checkpoint wanted = checkpoint_at(reference, 13), got = checkpoint_at(resumed, 13);
  for (const auto& [name, record] : wanted.index().tensors) EXPECT_TRUE(at::equal(got.read(name), wanted.read(name))) << name;
  config.optimizer.freeze = {};
  EXPECT_THAT([&] { run_tiny(config, {}); },
              ::testing::ThrowsMessage<ConfigError>(HasSubstr("the run to resume has other rules: ")));
}

TEST(Freeze, WithActivationCheckpointingTheNumbersStay) {
  const ScratchFolder plain, again;
  config::RunConfig config = frozen_config(plain.path(), {"blocks.0.*", "*.norm*"});
  const TinyOutcome one = run_tiny(config, {});
  config.output.expdir = again.path().string();
  config.loop.activation_checkpointing = config::CheckpointedPart::Blocks;
  const TinyOutcome other = run_tiny(config, {});
  const Checkpoint first = checkpoint_at(one, 13), second = checkpoint_at(other, 13);
  for (const std::string& name : first.index().parameters) EXPECT_TRUE(at::equal(first.read(name), second.read(name))) << name;
}

TEST(Freeze, RefusesWhatMatchesNothingOrAll) {
  const ScratchFolder folder;
  EXPECT_THAT([&] { run_tiny(frozen_config(folder.path(), {"patch_embed"}), {}); },
              ::testing::ThrowsMessage<ConfigError>(
                  HasSubstr("no parameter has such a name: freeze=patch_embed. Names are for instance ")));
  EXPECT_THAT(
      [&] {
        run_tiny(frozen_config(folder.path(), {"blocks.*", "*"}), {});
      },
      ::testing::ThrowsMessage<ConfigError>(
          HasSubstr("every parameter is frozen, nothing is left to train: freeze=[blocks.*, *]")));
}

}  // namespace
}  // namespace welkin::train
