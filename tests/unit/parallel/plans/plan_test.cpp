// SPDX-License-Identifier: Apache-2.0
// Plans on a mesh of one process: patterns, refusals and their texts; shards and their place in the whole.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "model/vit/vit.h"
#include "parallel/plans/plans.h"
#include "parallel/shard/shards.h"

namespace welkin::parallel {
namespace {

using testing::HasSubstr;

std::string config_error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

const model::VitOptions kTiny{.height = 8,
                              .width = 12,
                              .patch = 4,
                              .in_channels = 2,
                              .out_channels = 2,
                              .embed_dim = 12,
                              .depth = 2,
                              .num_heads = 6,
                              .mlp_width = 24};

TEST(Plan, PatternsMatchWholePartsOfAPath) {
  EXPECT_TRUE(matches_pattern("blocks.*.attn.q", "blocks.11.attn.q"));
  EXPECT_FALSE(matches_pattern("blocks.*.attn.q", "blocks.11.attn.qkv"));
  EXPECT_FALSE(matches_pattern("blocks.*", "blocks.1.attn"));
  EXPECT_FALSE(matches_pattern("blocks.*.attn", "blocks.1"));
}

TEST(VitPlan, SaysWhichSizesWorkWhenHeadsDoNotDivide) {
  const Mesh mesh("tp-cp-dp", {.dp_replicate = 1, .tp = 4, .cp = 1});
  const std::string text = config_error_of([&] { vit_plan({.num_tokens = 6, .num_heads = 6}, mesh, {}); });
  EXPECT_THAT(text, HasSubstr("the attention heads cannot be split: num_heads=6, tp=4, cp=1"));
  EXPECT_THAT(text, HasSubstr("tp=1 cp=1, tp=1 cp=2, tp=2 cp=1"));
}

TEST(VitPlan, AllToAllNeedsHeadsForTpTimesCp) {
  const Mesh mesh("tp-cp-dp", {.dp_replicate = 1, .tp = 2, .cp = 2});
  const VitLayout vit{.num_tokens = 6, .num_heads = 6};
  EXPECT_NO_THROW(vit_plan(vit, mesh, {.context_mode = ContextMode::Ring}));
  EXPECT_THAT(config_error_of([&] { vit_plan(vit, mesh, {.context_mode = ContextMode::AllToAll}); }),
              HasSubstr("All-to-all needs heads that divide by tp times cp"));
}

TEST(VitPlan, RefusesWhatCannotBeSplit) {
  const Mesh mesh("tp-cp-dp", {.dp_replicate = 1, .tp = 2, .cp = 4});
  const auto error_of = [&](const VitLayout& vit, const LayoutOptions& options) {
    return config_error_of([&] { vit_plan(vit, mesh, options); });
  };
  EXPECT_THAT(error_of({.num_tokens = 3, .num_heads = 2}, {}),
              HasSubstr("fewer tokens than ranks to share them: tokens=3, tp=2, cp=4"));
  EXPECT_THAT(error_of({.num_tokens = 7, .num_heads = 2}, {.sequence_parallel = true}), HasSubstr("sequence_parallel=1"));
  EXPECT_THAT(error_of({.num_tokens = 9, .num_heads = 2, .mlp_width = 5}, {}), HasSubstr("mlp width=5, tp=2"));
}

// 5 x 7 tokens over 2 x 4 blocks, of which the smallest has 2 x 1.
TEST(VitPlan, RefusesBlocksThatAreTooSmallOrHaveNoMasks) {
  const Mesh mesh("tp-w-h-dp", {.tp = 4, .h = 2, .w = 4});
  const auto error_of = [&](const VitLayout& vit, const LayoutOptions& options) {
    return config_error_of([&] { vit_plan(vit, mesh, options); });
  };
  VitLayout vit{.num_tokens = 35, .num_heads = 32, .tokens_per_row = 7};
  EXPECT_EQ(error_of(vit, {}), "no ConfigError");
  EXPECT_THAT(error_of(vit, {.sequence_parallel = true}),
              HasSubstr("fewer tokens than ranks to share them: tokens=35, tp=4, h x w=8, sequence_parallel=1"));
  vit.dropout = 0.1;
  EXPECT_THAT(error_of(vit, {}), HasSubstr("Set context_mode to all_to_all, cut the height alone (--spatial 1x8x1)"));
  EXPECT_EQ(error_of(vit, {.context_mode = ContextMode::AllToAll}), "no ConfigError");
  EXPECT_THAT(error_of(vit, {.sequence_parallel = true, .context_mode = ContextMode::AllToAll}),
              HasSubstr("sequence_parallel with dropout needs fields that are cut along their height alone"));
  vit.tokens_per_row = 3;
  EXPECT_THAT(error_of(vit, {}), HasSubstr("fewer columns of patches than ranks to share them: columns=3, w=4"));
}

// The inner grid has 4 x 6 points and 4 degrees.
TEST(SfnoPlan, RefusesBlocksThatLeaveARankNothing) {
  config::ModelConfig config;
  config.embed_dim = 48;
  config.scale_factor = 4;
  const model::ModelShape shape{.in_channels = 2, .out_channels = 2, .grid = {16, 24}};
  const auto error_of = [&](int64_t rows, int64_t columns) {
    return config_error_of([&] { sfno_plan_of(config, shape, Mesh("tp-w-h-dp", {.h = rows, .w = columns}), {}); });
  };
  EXPECT_EQ(error_of(2, 2), "no ConfigError");
  EXPECT_EQ(error_of(1, 4), "no ConfigError");
  EXPECT_THAT(error_of(6, 1), HasSubstr("the inner grid has fewer rows than ranks to share them: rows=4, h=6. Take at most 4"));
  EXPECT_THAT(error_of(1, 8), HasSubstr("fewer columns than ranks to share them: columns=6, w=8"));
  EXPECT_THAT(error_of(2, 3), HasSubstr("fewer degrees than ranks to share them: degrees=4, h x w=6"));
}

TEST(VitPlan, FitsTheModelAndChangesNothingAlone) {
  for (const bool joint : {false, true}) {
    model::VitOptions options = kTiny;
    options.joint_qkv = joint;
    model::Vit vit(options);
    vit.initialise(1);
    ParamTable table = ParamTable::of(vit);
    apply_plan(vit_plan({.num_tokens = 6, .num_heads = 6, .joint_qkv = joint}, Mesh(), {}), vit, table, MeshGroups());
    for (const ParamRow& row : table.rows()) EXPECT_EQ(row.local.sizes().vec(), row.global_shape);
    // The listed defect: the final norm sees a part of the tokens, so its gradient is a part of a sum.
    EXPECT_TRUE(table.at("norm.weight").partial_over.contains(Axis::Cp));
    EXPECT_TRUE(table.at("blocks.1.attn.proj.bias").partial_over.contains(Axis::Cp));
    EXPECT_FALSE(table.at("norm.weight").partial_over.contains(Axis::Tp));
    for (const char* whole : {"pos_embed", "patch_embed.proj.weight", "head.weight"}) {
      EXPECT_EQ(table.at(whole).partial_over, AxisSet()) << whole;
    }
  }
}

TEST(VitPlan, SequenceParallelMakesNormsPartialOverTp) {
  model::Vit vit(kTiny);
  ParamTable table = ParamTable::of(vit);
  apply_plan(vit_plan({.num_tokens = 6, .num_heads = 6}, Mesh(), {.sequence_parallel = true}), vit, table, MeshGroups());
  for (const char* name : {"norm.weight", "blocks.0.norm1.bias", "blocks.0.mlp.fc2.bias"}) {
    EXPECT_EQ(table.at(name).partial_over, Axis::Tp | Axis::Cp) << name;
  }
}

config::ModelConfig unet_of(int64_t width, int64_t scales) {
  config::ModelConfig config;
  config.width = width;
  config.scales = scales;
  return config;
}

TEST(UnetPlan, SplitsEveryLayerButTheLast) {
  const Mesh mesh("tp-dp", {.tp = 2});
  const Plan plan = unet_plan_of(unet_of(8, 3), {}, mesh, {});
  std::vector<std::string> names;
  for (const PlanRow& row : plan.rows) names.push_back(row.pattern);
  EXPECT_THAT(names, testing::ElementsAre("conv_down1", "conv_down2", "conv_up2", "conv_down3", "conv_up3"));
}

TEST(UnetPlan, RefusesWhatCannotBeSplit) {
  const Mesh mesh("tp-dp", {.tp = 3});
  EXPECT_THAT(config_error_of([&] { unet_plan_of(unet_of(64, 6), {}, mesh, {}); }),
              HasSubstr("the channels cannot be split: width=64, tp=3"));
  EXPECT_THAT(config_error_of([&] { unet_plan_of(unet_of(63, 6), {}, mesh, {.sequence_parallel = true}); }),
              HasSubstr("the U-Net has no tokens to split: sequence_parallel=true"));
}

TEST(Plan, RefusesRowsAndParametersThatHaveNoPlace) {
  model::Vit vit(kTiny);
  ParamTable table = ParamTable::of(vit);
  Plan plan = vit_plan({.num_tokens = 6, .num_heads = 6}, Mesh(), {});
  plan.rows.push_back({"blocks.*.attention", TokenMask{}});
  EXPECT_THAT(config_error_of([&] { apply_plan(plan, vit, table, MeshGroups()); }),
              HasSubstr("a row of the plan names nothing in the model: pattern=blocks.*.attention"));
  plan.rows.pop_back();
  plan.rows.erase(plan.rows.begin());  // pos_embed
  EXPECT_THAT(config_error_of([&] { apply_plan(plan, vit, table, MeshGroups()); }),
              HasSubstr("the plan does not say which tokens a parameter sees: parameter=pos_embed"));
}

TEST(Shards, JoinToTheWholeAndNameTheirPlaces) {
  const at::Tensor whole = at::arange(12 * 2).view({12, 2});
  for (const Shard shard : {Shard{0}, Shard{0, 3}, Shard{1}}) {
    std::vector<at::Tensor> parts;
    const Mesh mesh("tp", {.tp = 2});
    for (int64_t rank = 0; rank < 2; ++rank) {
      parts.push_back(shard_of(whole, shard, rank, 2));
      ParamRow row;
      row.global_shape = {12, 2};
      row.placements[Axis::Tp] = shard;
      const auto slices = slices_of(row, mesh, rank);
      EXPECT_EQ(slices.size(), static_cast<size_t>(shard.parts));
      for (const ShardSlice& slice : slices) {
        at::Tensor local = parts.back();
        at::Tensor global = whole;
        for (size_t dim = 0; dim < 2; ++dim) {
          local = local.narrow(static_cast<int64_t>(dim), slice.local_offset[dim], slice.shape[dim]);
          global = global.narrow(static_cast<int64_t>(dim), slice.global_offset[dim], slice.shape[dim]);
        }
        EXPECT_TRUE(at::equal(local, global));
      }
    }
    EXPECT_TRUE(at::equal(join_shards(parts, shard), whole));
  }
}

}  // namespace
}  // namespace welkin::parallel
