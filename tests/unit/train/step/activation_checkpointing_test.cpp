// SPDX-License-Identifier: Apache-2.0
// Runs with activation checkpointing equal the runs without, bit for bit, and keep less.
#include "train/step/activation_checkpointing.h"

#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "model/registry.h"
#include "number_close.h"
#include "tiny_steps.h"
#include "train/device/memory_limit.h"

namespace welkin::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class CheckpointedSteps : public ::testing::TestWithParam<std::tuple<config::CheckpointedPart, int64_t, config::AmpMode, bool>> {
};

TEST_P(CheckpointedSteps, EqualTheStepsAsTheyAreBitForBit) {
  const ScratchFolder root;
  const auto& [part, blocks, amp_mode, is_recorded] = GetParam();
  config::RunConfig config = tiny_config(root.path());
  config.precision.amp_mode = amp_mode;
  config.precision.loss_scale_window = 5;
  config.loop.micro_batch_size = 2;
  config.optimizer.clip_norm = 0.5;
  TinySteps plain(config, nullptr);
  config.loop.activation_checkpointing = part;
  config.loop.activation_checkpointing_blocks = blocks;
  RecorderCalls recorder_calls;
  TinySteps checkpointed(config, is_recorded ? &recorder_calls : nullptr);
  for (int64_t step = 0; step < 9; ++step) expect_equal_steps(checkpointed.next(), plain.next(), step);
  EXPECT_EQ(recorder_calls.replayed.empty(), !is_recorded);
  expect_equal_runs(checkpointed, plain);
}

using config::AmpMode;
using config::CheckpointedPart;

INSTANTIATE_TEST_SUITE_P(Kinds, CheckpointedSteps,
                         ::testing::Values(std::tuple(CheckpointedPart::Mlp, 0, AmpMode::None, false),
                                           std::tuple(CheckpointedPart::Mlp, 1, AmpMode::Fp16, true),
                                           std::tuple(CheckpointedPart::Attention, 0, AmpMode::Bf16, false),
                                           std::tuple(CheckpointedPart::Attention, 1, AmpMode::None, true),
                                           std::tuple(CheckpointedPart::Blocks, 0, AmpMode::None, false),
                                           std::tuple(CheckpointedPart::Blocks, 0, AmpMode::Fp16, true),
                                           std::tuple(CheckpointedPart::Blocks, 1, AmpMode::Bf16, false)));

// Bytes that lie between the passes, of a small ViT.
int64_t kept_bytes(CheckpointedPart part, int64_t blocks) {
  config::RunConfig config;
  config.model.model = "vit";
  config.model.embed_dim = 96;
  config.model.depth = 4;
  config.model.num_heads = 4;
  config.model.patch_size = 4;
  config.loop.activation_checkpointing = part;
  config.loop.activation_checkpointing_blocks = blocks;
  model::Registry registry;
  model::add_builtin_models(registry);
  const model::ModelPtr model = registry.at("vit").build(config.model, {.in_channels = 3, .out_channels = 3, .grid = {64, 96}});
  model->initialise(7);
  checkpoint_activations(*model, parallel::ParamTable::of(*model), config);
  const at::Tensor input = at::randn({2, 3, 64, 96});
  const int64_t before = cpu_memory_allocated();
  const at::Tensor output = model->forward(input, {});
  const int64_t kept = cpu_memory_allocated() - before;
  output.sum().backward();
  return kept;
}

class CheckpointedMemory : public ::testing::Test {
 protected:
  void SetUp() override { limit_cpu_memory(int64_t{1} << 40); }
  void TearDown() override { limit_cpu_memory(0); }
};

TEST_F(CheckpointedMemory, IsLessByWhatIsMadeAgain) {
  const int64_t all = kept_bytes(CheckpointedPart::None, 0);
  EXPECT_LT(kept_bytes(CheckpointedPart::Mlp, 0), all * 3 / 4);
  EXPECT_LT(kept_bytes(CheckpointedPart::Attention, 0), all * 3 / 4);
  EXPECT_LT(kept_bytes(CheckpointedPart::Blocks, 0), all / 6);
  const auto saved = static_cast<double>(all - kept_bytes(CheckpointedPart::Blocks, 0)),
             saved_by_half = static_cast<double>(all - kept_bytes(CheckpointedPart::Blocks, 2));
  EXPECT_TRUE(tests::within(saved_by_half / saved, 0.5, {0.01, "the allocator's odds and ends"})) << "two of four blocks";
}

TEST(ActivationCheckpointing, NeedsBlocks) {
  config::RunConfig config;
  config.model.model = "unet3d";
  config.model.width = 4;
  config.model.scales = 2;
  config.loop.activation_checkpointing = config::CheckpointedPart::Blocks;
  model::Registry registry;
  model::add_builtin_models(registry);
  const model::ModelPtr unet =
      registry.at("unet3d").build(config.model, {.in_channels = 1, .out_channels = 1, .grid = {8, 8, 8}});
  EXPECT_THAT([&] { checkpoint_activations(*unet, parallel::ParamTable::of(*unet), config); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("[activation_checkpointing] the model has no such parts: "
                                                         "activation_checkpointing=blocks"),
                                               HasSubstr("model=unet3d, sites blocks.*=0. Leave it at none"))));
  config.model = {};
  config.model.model = "vit";
  config.model.embed_dim = 16;
  config.model.num_heads = 2;
  config.model.depth = 2;
  config.loop.activation_checkpointing_blocks = 3;
  const model::ModelPtr vit = registry.at("vit").build(config.model, {.in_channels = 1, .out_channels = 1, .grid = {8, 8}});
  EXPECT_THAT([&] { checkpoint_activations(*vit, parallel::ParamTable::of(*vit), config); },
              ThrowsMessage<ConfigError>(HasSubstr("the model has fewer blocks: activation_checkpointing=blocks, "
                                                   "activation_checkpointing_blocks=3, model=vit, sites blocks.*=2")));
}

}  // namespace
}  // namespace welkin::train
