// SPDX-License-Identifier: Apache-2.0
#include "parallel/shard/param_table.h"

#include <ATen/ops/ones_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "model/vit/vit.h"

namespace welkin::parallel {
namespace {

model::VitOptions small_vit() {
  return {.height = 8,
          .width = 8,
          .patch = 4,
          .in_channels = 2,
          .out_channels = 2,
          .embed_dim = 8,
          .depth = 1,
          .num_heads = 2,
          .mlp_width = 16};
}

TEST(ParamTable, HasARowPerParameterInOrder) {
  const model::Vit vit(small_vit());
  const ParamTable table = ParamTable::of(vit);
  ASSERT_EQ(table.rows().size(), 22U);
  EXPECT_EQ(table.rows()[0].name, "pos_embed");
  EXPECT_EQ(table.rows()[3].name, "blocks.0.norm1.weight");
  EXPECT_EQ(table.rows().back().name, "head.weight");
  EXPECT_EQ(table.rows()[0].global_shape, (std::vector<int64_t>{1, 4, 8}));
  EXPECT_FALSE(table.rows()[0].placements[Axis::Tp].sharded());
  int64_t elements = 0;
  for (const at::Tensor& parameter : vit.parameters()) elements += parameter.numel();
  EXPECT_EQ(table.num_parameters(), elements);
}

TEST(ParamTable, RowsAreTheModulesOwnTensors) {
  model::Vit vit(small_vit());
  ParamTable table = ParamTable::of(vit);
  EXPECT_TRUE(table.at("head.weight").local.is_same(vit.named_parameters()["head.weight"]));
}

struct TiedModule : torch::nn::Module {
  TiedModule() : shared(std::make_shared<model::Vit>(small_vit())) {
    register_module("a", shared);
    register_module("z", shared);
  }
  std::shared_ptr<model::Vit> shared;
};

TEST(ParamTable, ATensorOfTwoNamesIsOneParameter) {
  const TiedModule tied;
  EXPECT_EQ(tied.named_parameters().size(), 44U) << "what libtorch makes of it";
  const ParamTable table = ParamTable::of(tied);
  ASSERT_EQ(table.rows().size(), 22U);
  EXPECT_EQ(table.rows()[0].name, "a.pos_embed");
  EXPECT_EQ(table.rows()[0].other_names, std::vector<std::string>{"z.pos_embed"});
}

TEST(ParamTable, DecayActsOnWeightsOfMatmulsOnly) {
  const model::Vit vit(small_vit());
  ParamTable table = ParamTable::of(vit);
  EXPECT_EQ(table.at("blocks.0.attn.q.weight").decay, DecayGroup::Decay);
  EXPECT_EQ(table.at("patch_embed.proj.weight").decay, DecayGroup::Decay);
  for (const char* name : {"pos_embed", "blocks.0.norm1.weight", "blocks.0.attn.q.bias", "norm.bias"}) {
    EXPECT_EQ(table.at(name).decay, DecayGroup::NoDecay) << name;
  }
}

TEST(ParamTable, StatesShareStridesAndTheRuleIsChecked) {
  model::Vit vit(small_vit());
  ParamTable table = ParamTable::of(vit);
  ParamRow& row = table.at("patch_embed.proj.weight");
  row.local.set_data(row.local.contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_EQ(row.add_state("exp_avg").strides(), row.local.strides());
  EXPECT_NO_THROW(table.check_strides());
  EXPECT_THROW(row.add_state("exp_avg"), InternalError);
  row.states["exp_avg_sq"] = at::ones_like(row.local, {}, at::MemoryFormat::Contiguous);
  EXPECT_THROW(table.check_strides(), InternalError);
}

TEST(ParamTable, NamesTheNearestWhenAbsent) {
  const model::Vit vit(small_vit());
  ParamTable table = ParamTable::of(vit);
  try {
    table.at("head.weigth");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("no such parameter: name=head.weigth. The nearest names are: head.weight"));
  }
  try {
    table.at("nope");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("no such parameter: name=nope. Its first names are: pos_embed, "));
  }
}

TEST(Placements, ReplicatedUntilSet) {
  Placements placements;
  EXPECT_FALSE(placements[Axis::Cp].sharded());
  placements[Axis::Tp] = Shard{1};
  EXPECT_TRUE(placements[Axis::Tp].sharded());
  EXPECT_EQ(placements[Axis::Tp].dim(), 1);
  placements[Axis::Tp] = Replicate{};
  EXPECT_EQ(placements, Placements());
}

}  // namespace
}  // namespace welkin::parallel
