// SPDX-License-Identifier: Apache-2.0
// Runs with activation checkpointing equal the runs without, bit for bit, and keep less.
#include "train/recompute/activation_checkpointing.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/square.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/error.h"
#include "core/text.h"
#include "model/registry.h"
#include "number_close.h"
#include "tiny_steps.h"
#include "tolerance.h"
#include "train/device/memory_limit.h"

namespace welkin::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

config::Checkpointing pattern(const char* regex) {
  config::Checkpointing value(config::CheckpointedPart::Pattern);
  value.pattern = regex;
  return value;
}

class CheckpointedSteps : public ::testing::TestWithParam<std::tuple<config::Checkpointing, int64_t, config::AmpMode, bool>> {};

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
                         ::testing::Values(std::tuple(config::Checkpointing(CheckpointedPart::Mlp), 0, AmpMode::None, false),
                                           std::tuple(config::Checkpointing(CheckpointedPart::Mlp), 1, AmpMode::Fp16, true),
                                           std::tuple(config::Checkpointing(CheckpointedPart::Attention), 0, AmpMode::Bf16,
                                                      false),
                                           std::tuple(config::Checkpointing(CheckpointedPart::Attention), 1, AmpMode::None, true),
                                           std::tuple(config::Checkpointing(CheckpointedPart::Blocks), 0, AmpMode::None, false),
                                           std::tuple(config::Checkpointing(CheckpointedPart::Blocks), 0, AmpMode::Fp16, true),
                                           std::tuple(config::Checkpointing(CheckpointedPart::Blocks), 1, AmpMode::Bf16, false),
                                           std::tuple(pattern(".*"), 0, AmpMode::None, false),
                                           std::tuple(pattern("blocks\\.0|.*\\.mlp"), 0, AmpMode::Bf16, false),
                                           std::tuple(pattern(".*(core|fc1|in)"), 0, AmpMode::None, true)));

double difference(const at::Tensor& a, const at::Tensor& b) { return a.sub(b).abs().max().item<double>(); }

// Each alone: what a site reads of other layers, as the bias before a GELU, has its gradient nevertheless.
TEST(CheckpointedSites, EverySiteKeepsTheGradientsOfAllParameters) {
  model::Registry registry;
  model::add_builtin_models(registry);
  for (const std::string name : {"vit", "afno", "swin", "sfno", "unet2d"}) {
    config::RunConfig config;
    config.model.model = name;
    config.model.embed_dim = 8, config.model.depth = 1, config.model.num_heads = 2, config.model.num_blocks = 2;
    config.model.patch_size = 2, config.model.window_size = {2, 4}, config.model.width = 4, config.model.scales = 1;
    const at::Tensor input = at::randn({2, 3, 8, 16});
    const auto gradients = [&](const std::string& site) {
      const model::ModelPtr model = registry.at(name).build(config.model, {.in_channels = 3, .out_channels = 3, .grid = {8, 16}});
      model->initialise(7);
      if (!site.empty()) run_again(sites_named(*model, {site}), parallel::ParamTable::of(*model));
      at::square(model->forward(input, {})).sum().backward();
      std::map<std::string, at::Tensor> all;
      for (const auto& item : model->named_parameters()) all[item.key()] = item.value().grad();
      return all;
    };
    const auto wanted = gradients("");
    double largest = 0;  // a bias before a norm has a gradient of 0, which is nothing but roundings
    for (const auto& [parameter, gradient] : wanted) largest = std::max(largest, gradient.abs().max().item<double>());
    const model::ModelPtr model = registry.at(name).build(config.model, {.in_channels = 3, .out_channels = 3, .grid = {8, 16}});
    for (const model::Site* site : model->sites()) {
      for (const auto& [parameter, gradient] : gradients(site->name())) {
        ASSERT_TRUE(gradient.defined()) << name << " " << site->name() << " " << parameter;
        EXPECT_TRUE(tests::rounds_to(difference(gradient, wanted.at(parameter)), 0, largest, kFp32, 64))
            << name << " " << site->name() << " " << parameter;
      }
    }
  }
}

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

// Boxes whose activations are most of a step: output, gradients and what lies between the passes.
struct UnetPass {
  at::Tensor output;
  std::vector<at::Tensor> weights;
  int64_t kept = 0;
};

UnetPass unet_steps(const config::Checkpointing& checkpointing) {
  config::RunConfig config;
  config.model.model = "unet3d";
  config.model.width = 4;
  config.model.scales = 3;
  config.loop.activation_checkpointing = checkpointing;
  model::Registry registry;
  model::add_builtin_models(registry);
  const model::ModelPtr model =
      registry.at("unet3d").build(config.model, {.in_channels = 2, .out_channels = 3, .grid = {16, 32, 16}});
  model->initialise(7);
  const parallel::ParamTable table = parallel::ParamTable::of(*model);
  checkpoint_activations(*model, table, config);
  const at::Tensor input = at::arange(2 * 2 * 16 * 32 * 16, at::kFloat).mul_(0.37F).sin_().view({2, 2, 16, 32, 16});
  UnetPass pass;
  for (int step = 0; step < 3; ++step) {
    const int64_t before = cpu_memory_allocated();
    pass.output = model->forward(input, {});
    pass.kept = cpu_memory_allocated() - before;
    pass.output.square().sum().backward();
    const at::NoGradGuard no_grad;
    for (const parallel::ParamRow& row : table.rows()) {
      row.local.sub_(row.local.grad(), 1e-4);
      row.local.mutable_grad() = at::Tensor();
    }
  }
  for (const parallel::ParamRow& row : table.rows()) pass.weights.push_back(row.local.detach());
  return pass;
}

TEST_F(CheckpointedMemory, OfAUnetIsThatOfItsLevels) {
  const UnetPass plain = unet_steps(CheckpointedPart::None);
  for (const config::Checkpointing& value : {config::Checkpointing(CheckpointedPart::Blocks), pattern("levels\\.3"),
                                             pattern("conv_.*"), pattern("levels\\.3|conv_down2"), pattern(".*")}) {
    const UnetPass checkpointed = unet_steps(value);
    EXPECT_TRUE(at::equal(checkpointed.output, plain.output)) << text_of(value);
    for (size_t i = 0; i < plain.weights.size(); ++i) {
      EXPECT_TRUE(at::equal(checkpointed.weights[i], plain.weights[i])) << text_of(value) << " " << i;
    }
    EXPECT_LE(checkpointed.kept, plain.kept) << text_of(value);
  }
  EXPECT_LT(unet_steps(CheckpointedPart::Blocks).kept, plain.kept * 9 / 10);
}

class SitesToRunAgain : public ::testing::Test {
 protected:
  SitesToRunAgain() { model::add_builtin_models(registry_); }
  std::string of(const char* name, const config::Checkpointing& value) {
    config::RunConfig config;
    config.model.model = name;
    config.model.embed_dim = 16;
    config.model.num_heads = config.model.depth = 2;
    config.model.width = 4;
    config.model.scales = 3;
    config.loop.activation_checkpointing = value;
    const bool is_vit = config.model.model == "vit";
    const model::ModelPtr model = registry_.at(name).build(
        config.model,
        {.in_channels = 1, .out_channels = 1, .grid = is_vit ? std::vector<int64_t>{8, 8} : std::vector<int64_t>{8, 8, 8}});
    std::vector<std::string> names;
    for (const model::Site* site : sites_to_run_again(*model, config)) names.push_back(site->name());
    return join(names, " ");
  }

 private:
  model::Registry registry_;
};

TEST_F(SitesToRunAgain, AreThoseThatNoOtherOfThemHolds) {
  EXPECT_EQ(of("vit", CheckpointedPart::None), "");
  EXPECT_EQ(of("vit", CheckpointedPart::Attention), "blocks.0.attn blocks.1.attn");
  EXPECT_EQ(of("vit", pattern("blocks\\.0.*|.*mlp")), "blocks.0 blocks.1.mlp");
  EXPECT_EQ(of("vit", pattern("norm|head")), "norm head");
  EXPECT_EQ(of("unet3d", CheckpointedPart::Blocks), "levels.2");
  EXPECT_EQ(of("unet3d", pattern("levels\\.3|conv_down.*")), "conv_down1 conv_down2 levels.3");
  EXPECT_EQ(of("unet3d", pattern(".*")), "conv_down1 levels.2 conv_last");
}

TEST_F(SitesToRunAgain, AreNamedWhereNoneMatches) {
  EXPECT_THAT([&] { of("vit", pattern("block")); },
              ThrowsMessage<ConfigError>(AllOf(
                  HasSubstr("[activation_checkpointing] no site has a name that the pattern matches as a whole: pattern=block, "
                            "model=vit. Its sites are, with # for a number: "),
                  HasSubstr("blocks.#, "), HasSubstr("blocks.#.attn.core, "), HasSubstr("tokens.out, head"))));
  EXPECT_THAT([&] { of("unet3d", pattern("levels")); },
              ThrowsMessage<ConfigError>(HasSubstr("conv_down#, levels.#, conv_up#, conv_last")));
}

TEST(ActivationCheckpointing, NeedsBlocks) {
  config::RunConfig config;
  config.model.model = "unet3d";
  config.model.width = 4;
  config.model.scales = 2;
  config.loop.activation_checkpointing = config::CheckpointedPart::Attention;
  model::Registry registry;
  model::add_builtin_models(registry);
  const model::ModelPtr unet =
      registry.at("unet3d").build(config.model, {.in_channels = 1, .out_channels = 1, .grid = {8, 8, 8}});
  EXPECT_THAT([&] { checkpoint_activations(*unet, parallel::ParamTable::of(*unet), config); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("[activation_checkpointing] the model has no such parts: "
                                                         "activation_checkpointing=attention"),
                                               HasSubstr("model=unet3d, sites blocks.*.attn=0. Leave it at none"))));
  config.model = {};
  config.loop.activation_checkpointing = config::CheckpointedPart::Blocks;
  config.model.model = "vit";
  config.model.embed_dim = 16;
  config.model.num_heads = 2;
  config.model.depth = 2;
  config.loop.activation_checkpointing_blocks = 3;
  const model::ModelPtr vit = registry.at("vit").build(config.model, {.in_channels = 1, .out_channels = 1, .grid = {8, 8}});
  EXPECT_THAT(
      [&] { checkpoint_activations(*vit, parallel::ParamTable::of(*vit), config); },
      ThrowsMessage<ConfigError>(HasSubstr("the model has fewer blocks: activation_checkpointing=blocks, "
                                           "activation_checkpointing_blocks=3, model=vit, sites blocks.* or levels.*=2")));
}

}  // namespace
}  // namespace welkin::train
