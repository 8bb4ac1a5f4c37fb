// SPDX-License-Identifier: Apache-2.0
#include "model/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "number_close.h"

namespace welkin::model {
namespace {

Registry builtin() {
  Registry registry;
  add_builtin_models(registry);
  return registry;
}

config::ModelConfig vit_config() {
  config::ModelConfig config;
  config.model = "vit";
  return config;
}

const ModelShape kEra5{.in_channels = 20, .out_channels = 20, .grid = {360, 720}};
const ModelShape kBox{.in_channels = 4, .out_channels = 5, .grid = {64, 64, 64}};

std::string build_error(const std::string& name, const config::ModelConfig& config, const ModelShape& shape) {
  try {
    builtin().at(name).build(config, shape);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

int64_t num_parameters(const Model& model) {
  int64_t total = 0;
  for (const at::Tensor& parameter : model.parameters()) total += parameter.numel();
  return total;
}

constexpr tests::Stated kTenth{0.05, "half of the last digit that is stated"},
    kHundredth{0.005, "half of the last digit that is stated"};

// GF of a training step per sample, counted by hand.
TEST(ModelCost, VitEqualsTheCount) {
  const auto train_gf = [](int64_t width, int64_t patch) {
    config::ModelConfig config = vit_config();
    config.embed_dim = width;
    config.patch_size = patch;
    return builtin().at("vit").cost(config, kEra5).train_flops / 1e9;
  };
  EXPECT_TRUE(tests::within(train_gf(384, 8), 1442.9, kTenth));
  EXPECT_TRUE(tests::within(train_gf(1024, 8), 6140.9, kTenth));
  EXPECT_TRUE(tests::within(train_gf(1536, 8), 11963.2, kTenth));
  EXPECT_TRUE(tests::within(train_gf(1536, 4), 91149.7, kTenth));
  EXPECT_TRUE(tests::within(builtin().at("vit").cost(vit_config(), kEra5).forward_flops / 1e9, 482.3, kTenth));
}

TEST(ModelCost, UnetEqualsTheCount) {
  const ModelCost cost = builtin().at("unet3d").cost({}, kBox);
  EXPECT_TRUE(tests::within(cost.forward_flops / 1e9, 27.18, kHundredth));
  EXPECT_TRUE(tests::within(cost.train_flops / 1e9, 80.46, kHundredth));
}

TEST(ModelCost, ParametersAreThoseOfTheModelAndOfTheTutorials) {
  for (const config::QkvLayout qkv : {config::QkvLayout::Joint, config::QkvLayout::Separate}) {
    config::ModelConfig config = vit_config();
    config.qkv = qkv;
    EXPECT_EQ(num_parameters(*builtin().at("vit").build(config, kEra5)), 23832960);
    EXPECT_EQ(builtin().at("vit").cost(config, kEra5).parameters, 23832960);
  }
  config::ModelConfig config;
  EXPECT_EQ(num_parameters(*builtin().at("unet3d").build(config, kBox)), 116977029);
  EXPECT_EQ(builtin().at("unet3d").cost(config, kBox).parameters, 116977029);
  config.full_scale = false;
  EXPECT_EQ(builtin().at("unet3d").cost(config, kBox).parameters, 66644357);
}

// FourCastNet of the paper without its last norm, which has no part in its forward pass; the others by their own parameters.
TEST(ModelCost, ParametersOfModelsOfFields) {
  config::ModelConfig config;
  config.embed_dim = 768;
  const ModelShape fourcastnet{.in_channels = 20, .out_channels = 20, .grid = {720, 1440}};
  EXPECT_EQ(num_parameters(*builtin().at("afno").build(config, fourcastnet)), 74691840 - 2 * 768);
  config.embed_dim = 16;
  config.depth = 3;
  config.window_size = {2, 3};
  config.width = 8;
  const ModelShape shape{.in_channels = 5, .out_channels = 4, .grid = {48, 96}};
  for (const char* model : {"afno", "sfno", "swin", "unet2d"}) {
    const ModelPtr built = builtin().at(model).build(config, shape);
    const ModelCost cost = builtin().at(model).cost(config, shape);
    EXPECT_EQ(num_parameters(*built), cost.parameters) << model;
    int64_t of_layers = 0;
    for (const LayerCost& layer : cost.layers) of_layers += layer.parameters;
    EXPECT_LE(of_layers, cost.parameters) << model;
  }
}

TEST(ModelCost, WidthsOfTheModelParallelPresets) {
  config::ModelConfig config = vit_config();
  config.embed_dim = 1024;
  EXPECT_EQ(builtin().at("vit").cost(config, kEra5).parameters, 157926400);
  config.embed_dim = 1536;
  EXPECT_EQ(builtin().at("vit").cost(config, kEra5).parameters, 350135808);
  config.patch_size = 4;
  EXPECT_EQ(builtin().at("vit").cost(config, kEra5).parameters, 365849088);
}

TEST(Registry, InputHistoryComesFromTheShape) {
  config::ModelConfig config = vit_config();
  config.embed_dim = 16;
  config.num_heads = 2;
  config.depth = 1;
  const ModelShape history{.in_channels = 3 * 2 + 4, .out_channels = 2, .grid = {16, 32}, .newest_input_channel = 4};
  const ModelPtr model = builtin().at("vit").build(config, history);
  EXPECT_EQ(model->named_parameters()["patch_embed.proj.weight"].sizes(), (std::vector<int64_t>{16, 10, 8, 8}));
  EXPECT_EQ(model->named_parameters()["head.weight"].sizes(), (std::vector<int64_t>{128, 16}));
}

TEST(Registry, UnknownAndTakenNames) {
  Registry registry = builtin();
  EXPECT_EQ(registry.names(), (std::vector<std::string>{"afno", "sfno", "swin", "unet2d", "unet3d", "vit"}));
  try {
    registry.at("vitt");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "[model] no such model: model=vitt. Choose one of: afno, sfno, swin, unet2d, unet3d, vit; or load the plug-in "
                 "that brings it "
                 "with --plugin.");
  }
  EXPECT_THROW(registry.add("vit", {}), ConfigError);
}

TEST(Registry, AllProblemsOfAVitTogether) {
  config::ModelConfig config = vit_config();
  config.num_heads = 7;
  config.dropout = 1.0;
  config.residual = true;
  const std::string text = build_error("vit", config, {.in_channels = 20, .out_channels = 21, .grid = {361, 720}});
  EXPECT_THAT(text, testing::HasSubstr("the grid must be divisible by patches: grid=[361, 720], patch_size=8"));
  EXPECT_THAT(text, testing::HasSubstr("heads must divide the width: embed_dim=384, num_heads=7"));
  EXPECT_THAT(text, testing::HasSubstr("a rate lies in [0, 1): dropout=1"));
  EXPECT_THAT(text, testing::HasSubstr("residual prediction needs every predicted channel"));
  config.mlp_ratio = 0.001;
  EXPECT_THAT(build_error("vit", config, {.in_channels = 20, .out_channels = 20, .grid = {360, 720}}),
              testing::HasSubstr("must round to at least 1: embed_dim=384, mlp_ratio=0.001"));
  EXPECT_THAT(build_error("vit", vit_config(), kBox),
              testing::HasSubstr("the grid must be (latitude, longitude): grid=[64, 64, 64]"));
}

TEST(Registry, ProblemsOfModelsOfFields) {
  config::ModelConfig config;
  config.num_blocks = 7;
  config.scale_factor = 16;
  config.window_size = {5, 8};
  const ModelShape shape{.in_channels = 2, .out_channels = 2, .grid = {16, 24}};
  EXPECT_THAT(build_error("afno", config, shape),
              testing::HasSubstr("blocks of channels must divide the width: embed_dim=384, num_blocks=7"));
  EXPECT_THAT(build_error("sfno", config, shape),
              testing::HasSubstr("norms need two points on the coarser grid: grid=[16, 24], scale_factor=16"));
  EXPECT_THAT(build_error("swin", config, shape),
              testing::HasSubstr("windows must divide the grid of patches: patches=[2, 3], window_size=[5, 8]"));
  EXPECT_THAT(build_error("unet2d", config, shape),
              testing::HasSubstr("both edges must be divisible by 2^scales: grid=[16, 24], scales=4"));
  config.scales = 4;
  EXPECT_THAT(build_error("unet2d", config, {.in_channels = 2, .out_channels = 2, .grid = {16, 16}}),
              testing::HasSubstr("norms need two points at the deepest scale: grid=[16, 16], scales=4"));
  for (const char* model : {"afno", "sfno", "swin", "unet2d"}) {
    EXPECT_THAT(build_error(model, config, kBox),
                testing::HasSubstr("the grid must be (latitude, longitude): grid=[64, 64, 64]"));
  }
}

TEST(Registry, ProblemsOfAUnet) {
  EXPECT_THAT(build_error("unet3d", {}, {.in_channels = 4, .out_channels = 5, .grid = {32, 32, 32}}),
              testing::HasSubstr("every edge must be divisible by 2^scales: grid=[32, 32, 32], scales=6, 2^scales=64"));
  config::ModelConfig config;
  config.scales = 7;
  EXPECT_THAT(build_error("unet3d", config, kBox), testing::HasSubstr("scales lie in 2..6: scales=7"));
}

}  // namespace
}  // namespace welkin::model
