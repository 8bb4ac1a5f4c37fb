// SPDX-License-Identifier: Apache-2.0
// The costs' count of what a forward pass keeps, against what tensors really take between the two passes.
#include <ATen/Parallel.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "model/base/model_cost.h"
#include "model/registry.h"
#include "number_close.h"
#include "ops/base/autocast.h"
#include "ops/gemm/mixed_matmul.h"
#include "train/device/memory_limit.h"
#include "train/recompute/activation_checkpointing.h"

namespace welkin::train {
namespace {

constexpr int64_t kNoLimit = int64_t{1} << 40;

struct KeptCase {
  const char* name;
  const char* model;
  config::ModelConfig config;
  model::ModelShape shape;
  config::CheckpointedPart checkpointing = config::CheckpointedPart::None;
  int64_t checkpointed_blocks = 0;
};

config::ModelConfig kept_vit(config::QkvLayout qkv) {
  config::ModelConfig config;
  config.model = "vit";
  config.embed_dim = 96;
  config.depth = 4;
  config.num_heads = 4;
  config.patch_size = 4;
  config.qkv = qkv;
  return config;
}

config::ModelConfig kept_unet() {
  config::ModelConfig config;
  config.model = "unet3d";
  config.width = 16;
  config.scales = 4;
  return config;
}

config::ModelConfig kept_field_model(const char* model) {
  config::ModelConfig config;
  config.model = model;
  config.embed_dim = 32;
  config.depth = 3;
  config.patch_size = 2;
  config.scale_factor = 2;
  config.mlp_ratio = 2;
  config.num_heads = 4;
  config.window_size = {4, 6};
  config.width = 16;
  config.scales = 3;
  return config;
}

class KeptValuesCount : public ::testing::TestWithParam<KeptCase> {
 protected:
  void TearDown() override { limit_cpu_memory(0); }
};

class KeptCasts : public ::testing::Test {
 protected:
  void TearDown() override { limit_cpu_memory(0); }
};

TEST_P(KeptValuesCount, EqualsWhatTensorsTakeBetweenForwardAndBackward) {
  const KeptCase& c = GetParam();
  limit_cpu_memory(kNoLimit);
  model::Registry registry;
  model::add_builtin_models(registry);
  const model::ModelEntry& entry = registry.at(c.model);
  const model::ModelPtr model = entry.build(c.config, c.shape);
  model->initialise(7);
  config::RunConfig config;
  config.model = c.config;
  config.loop.activation_checkpointing = c.checkpointing;
  config.loop.activation_checkpointing_blocks = c.checkpointed_blocks;
  checkpoint_activations(*model, parallel::ParamTable::of(*model), config);
  std::vector<int64_t> sizes{2, c.shape.in_channels};
  sizes.insert(sizes.end(), c.shape.grid.begin(), c.shape.grid.end());
  const at::Tensor input = at::randn(sizes);
  const int64_t before = cpu_memory_allocated();
  const at::Tensor output = model->forward(input, {});
  const auto kept = static_cast<double>(cpu_memory_allocated() - before);
  const model::MemoryCost cost = entry.memory(config, c.shape);
  const double counted = 2 * model::kFloatBytes * cost.kept.sum_on_cpu();
  EXPECT_TRUE(tests::within(kept / counted, 1.0,
                            {0.05, "statistics of norms and attention, and the allocator's odds and ends, are not counted"}))
      << kept << " bytes are kept, " << counted << " counted";
}

// A model of which next to nothing but the copies of its weights is kept: four tokens.
TEST_F(KeptCasts, AreOfWhatDoesNotRunAgain) {
  const ops::UpcastMatmulGuard as_with_fast_bf16(/*widens=*/false);
  model::Registry registry;
  model::add_builtin_models(registry);
  config::RunConfig config;
  config.model = kept_vit(config::QkvLayout::Separate);
  config.model.embed_dim = 384;
  const model::ModelShape shape{.in_channels = 3, .out_channels = 3, .grid = {8, 8}};
  using config::CheckpointedPart;
  for (const CheckpointedPart part :
       {CheckpointedPart::None, CheckpointedPart::Mlp, CheckpointedPart::Attention, CheckpointedPart::Blocks}) {
    limit_cpu_memory(kNoLimit);
    const model::ModelPtr model = registry.at("vit").build(config.model, shape);
    model->initialise(7);
    config.loop.activation_checkpointing = part;
    const parallel::ParamTable table = parallel::ParamTable::of(*model);
    checkpoint_activations(*model, table, config);
    const at::Tensor input = at::randn({1, 3, 8, 8});
    int64_t in_blocks = 0, elsewhere = 0;
    for (const parallel::ParamRow& row : table.rows()) {
      if (row.local.dim() < 2) continue;
      (row.name.find("blocks.") == 0 ? in_blocks : elsewhere) += row.local.numel();
    }
    const int64_t before = cpu_memory_allocated();
    at::Tensor output;
    {
      const ops::AutocastGuard autocast(at::kCPU, at::kBFloat16);
      output = model->forward(input, {});
    }
    const auto kept = static_cast<double>(cpu_memory_allocated() - before);
    const model::MemoryCost cost = registry.at("vit").memory(config, shape);
    const double counted = 2.0 * static_cast<double>(in_blocks - cost.checkpointed_weights);
    const double rest = 2.0 * static_cast<double>(elsewhere) + 4 * cost.kept.sum_on_cpu() + 64.0 * 1024;
    EXPECT_GE(kept, counted) << name_of(part);
    EXPECT_LE(kept, counted + rest) << name_of(part);
    EXPECT_LT(rest, 0.1 * 2.0 * static_cast<double>(in_blocks)) << "the bound has to tell the parts apart";
  }
}

// Where matmuls are made in float32, operands are rounded on the way.
TEST_F(KeptCasts, AreNoneWhereMatmulsAreWidened) {
  const ops::UpcastMatmulGuard as_without_fast_bf16(/*widens=*/true);
  model::Registry registry;
  model::add_builtin_models(registry);
  const model::ModelShape shape{.in_channels = 3, .out_channels = 3, .grid = {8, 8}};
  for (const config::QkvLayout layout : {config::QkvLayout::Separate, config::QkvLayout::Joint}) {
    config::ModelConfig config = kept_vit(layout);
    config.embed_dim = 384;
    limit_cpu_memory(kNoLimit);
    const model::ModelPtr model = registry.at("vit").build(config, shape);
    model->initialise(7);
    const at::Tensor input = at::randn({1, 3, 8, 8});
    const int64_t before = cpu_memory_allocated();
    at::Tensor output;
    {
      const ops::AutocastGuard autocast(at::kCPU, at::kBFloat16);
      output = model->forward(input, {});
    }
    const auto kept = static_cast<double>(cpu_memory_allocated() - before);
    const double copies_of_qkv = 2.0 * 3 * 384 * 384 * static_cast<double>(config.depth);
    EXPECT_LT(kept, 0.1 * copies_of_qkv);
  }
}

// A box of few cells, so that copies of the weights would be the most of what is kept.
TEST_F(KeptCasts, ConvolutionsHaveNone) {
  for (const bool widens : {false, true}) {
    const ops::UpcastMatmulGuard as_on_some_processor(widens);
    model::Registry registry;
    model::add_builtin_models(registry);
    config::RunConfig config;
    config.model = kept_unet();
    config.model.width = 64;
    limit_cpu_memory(kNoLimit);
    const model::ModelShape shape{.in_channels = 4, .out_channels = 5, .grid = {16, 16, 16}};
    const model::ModelPtr model = registry.at("unet3d").build(config.model, shape);
    model->initialise(7);
    const parallel::ParamTable table = parallel::ParamTable::of(*model);
    const at::Tensor input = at::randn({1, 4, 16, 16, 16});
    const int64_t before = cpu_memory_allocated();
    at::Tensor output;
    {
      const ops::AutocastGuard autocast(at::kCPU, at::kBFloat16);
      output = model->forward(input, {});
    }
    const auto kept = static_cast<double>(cpu_memory_allocated() - before);
    const model::MemoryCost cost = registry.at("unet3d").memory(config, shape);
    EXPECT_FALSE(cost.has_cast_weights);
    EXPECT_LE(kept, 4 * cost.kept.sum_on_cpu() + 0.05 * 2 * static_cast<double>(table.num_parameters()));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, KeptValuesCount,
    ::testing::Values(
        KeptCase{
            "VitSeparate", "vit", kept_vit(config::QkvLayout::Separate), {.in_channels = 3, .out_channels = 3, .grid = {64, 96}}},
        KeptCase{"VitJoint", "vit", kept_vit(config::QkvLayout::Joint), {.in_channels = 3, .out_channels = 3, .grid = {64, 96}}},
        KeptCase{"VitMlp",
                 "vit",
                 kept_vit(config::QkvLayout::Separate),
                 {.in_channels = 3, .out_channels = 3, .grid = {64, 96}},
                 config::CheckpointedPart::Mlp},
        KeptCase{"VitAttention",
                 "vit",
                 kept_vit(config::QkvLayout::Joint),
                 {.in_channels = 3, .out_channels = 3, .grid = {64, 96}},
                 config::CheckpointedPart::Attention},
        KeptCase{"VitBlocks",
                 "vit",
                 kept_vit(config::QkvLayout::Separate),
                 {.in_channels = 3, .out_channels = 3, .grid = {64, 96}},
                 config::CheckpointedPart::Blocks},
        KeptCase{"VitThreeBlocks",
                 "vit",
                 kept_vit(config::QkvLayout::Joint),
                 {.in_channels = 3, .out_channels = 3, .grid = {64, 96}},
                 config::CheckpointedPart::Blocks,
                 3},
        KeptCase{"Afno", "afno", kept_field_model("afno"), {.in_channels = 3, .out_channels = 3, .grid = {64, 96}}},
        KeptCase{"AfnoBlocks",
                 "afno",
                 kept_field_model("afno"),
                 {.in_channels = 3, .out_channels = 3, .grid = {64, 96}},
                 config::CheckpointedPart::Blocks},
        KeptCase{"AfnoMlp",
                 "afno",
                 kept_field_model("afno"),
                 {.in_channels = 3, .out_channels = 3, .grid = {64, 96}},
                 config::CheckpointedPart::Mlp},
        KeptCase{"Sfno", "sfno", kept_field_model("sfno"), {.in_channels = 3, .out_channels = 3, .grid = {64, 96}}},
        KeptCase{"SfnoBlocks",
                 "sfno",
                 kept_field_model("sfno"),
                 {.in_channels = 3, .out_channels = 3, .grid = {64, 96}},
                 config::CheckpointedPart::Blocks},
        KeptCase{"SfnoMlp",
                 "sfno",
                 kept_field_model("sfno"),
                 {.in_channels = 3, .out_channels = 3, .grid = {64, 96}},
                 config::CheckpointedPart::Mlp},
        KeptCase{"Swin", "swin", kept_field_model("swin"), {.in_channels = 3, .out_channels = 3, .grid = {64, 96}}},
        KeptCase{"SwinBlocks",
                 "swin",
                 kept_field_model("swin"),
                 {.in_channels = 3, .out_channels = 3, .grid = {64, 96}},
                 config::CheckpointedPart::Blocks},
        KeptCase{"SwinMlp",
                 "swin",
                 kept_field_model("swin"),
                 {.in_channels = 3, .out_channels = 3, .grid = {64, 96}},
                 config::CheckpointedPart::Mlp},
        KeptCase{"SwinAttention",
                 "swin",
                 kept_field_model("swin"),
                 {.in_channels = 3, .out_channels = 3, .grid = {64, 96}},
                 config::CheckpointedPart::Attention},
        KeptCase{"Unet2d", "unet2d", kept_field_model("unet2d"), {.in_channels = 3, .out_channels = 3, .grid = {64, 96}}},
        KeptCase{"Unet", "unet3d", kept_unet(), {.in_channels = 4, .out_channels = 5, .grid = {64, 64, 64}}}),
    [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace welkin::train
