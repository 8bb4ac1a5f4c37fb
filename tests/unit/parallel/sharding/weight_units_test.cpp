// SPDX-License-Identifier: Apache-2.0
// What is gathered together: blocks and convolutions, of models that know nothing of it.
#include "parallel/sharding/weight_units.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <string>

#include "model/layers/linear.h"
#include "model/registry.h"

namespace welkin::parallel {
namespace {

model::ModelPtr built(const char* name) {
  model::Registry models;
  model::add_builtin_models(models);
  config::ModelConfig config;
  config.embed_dim = 32;
  config.depth = 3;
  config.patch_size = 4;
  config.num_heads = 4;
  config.width = 8;
  config.scales = 3;
  const bool is_vit = std::string(name) == "vit";
  return models.at(name).build(
      config,
      {.in_channels = 2, .out_channels = 2, .grid = is_vit ? std::vector<int64_t>{16, 16} : std::vector<int64_t>{8, 8, 8}});
}

// "all: a b, site: c d"
std::string units_text(model::Model& model) {
  ParamTable table = ParamTable::of(model);
  std::string text;
  size_t rows = 0;
  for (const WeightUnit& unit : weight_units(model, table)) {
    text += (unit.site == nullptr ? "all:" : unit.site->name() + ":");
    for (const ParamRow* row : unit.rows) text += " " + row->name;
    text += ", ";
    rows += unit.rows.size();
  }
  EXPECT_EQ(rows, table.rows().size());
  return text;
}

TEST(WeightUnits, OfTheVitAreItsBlocks) {
  const std::string text = units_text(*built("vit"));
  EXPECT_EQ(text.find("all: pos_embed"), 0U);
  for (const char* block : {"blocks.0:", "blocks.1:", "blocks.2:"}) EXPECT_NE(text.find(block), std::string::npos) << text;
  EXPECT_EQ(text.find("blocks.0.attn:"), std::string::npos) << "within a block";
  EXPECT_EQ(text.find("norm: norm.weight"), std::string::npos) << "too small";
}

TEST(WeightUnits, OfTheUnetAreItsConvolutions) {
  const std::string text = units_text(*built("unet3d"));
  EXPECT_NE(text.find("conv_down3: conv_down3.0.weight conv_down3.0.bias"), std::string::npos) << text;
  EXPECT_NE(text.find("conv_up3:"), std::string::npos) << text;
}

struct Bare : model::Model {
  Bare() {
    register_parameter("scale", at::zeros({8}));
    fc = add<model::Linear>("fc", 8, 8);
  }
  at::Tensor forward(const at::Tensor& input, const model::ForwardContext& /*context*/) override { return fc->forward(input); }
  std::shared_ptr<model::Linear> fc;
};

struct NoSites : model::Model {
  NoSites() { register_parameter("scale", at::zeros({8})); }
  at::Tensor forward(const at::Tensor& input, const model::ForwardContext& /*context*/) override { return input; }
};

// The site of a linear layer is its matmul: who reads the bias comes later.
TEST(WeightUnits, OfOnesOwnModelNeedNothingOfIt) {
  Bare bare;
  EXPECT_EQ(units_text(bare), "all: scale fc.bias, fc: fc.weight, ");
  NoSites none;
  EXPECT_EQ(units_text(none), "all: scale, ");
}

// Who reads them at another site, or in a later chunk, finds them whole.
TEST(WeightUnits, OfTiedWeightsAreOutsideOfSites) {
  Bare bare;
  ParamTable table = ParamTable::of(bare);
  table.at("fc.weight").other_names = {"again.weight"};
  table.at("fc.weight").other_chunks = {1};
  table.at("scale").chunk = 1;
  const std::vector<WeightUnit> units = weight_units(bare, table);
  ASSERT_EQ(units.size(), 3U);
  EXPECT_EQ(units[0].site, nullptr);
  EXPECT_EQ(units[0].rows, std::vector<ParamRow*>{&table.at("fc.weight")});
  EXPECT_EQ(units[0].other_chunks, std::vector<int64_t>{1});
  EXPECT_EQ(units[1].rows, std::vector<ParamRow*>{&table.at("fc.bias")});
  EXPECT_EQ(units[2].rows, std::vector<ParamRow*>{&table.at("scale")});
  EXPECT_EQ(units[2].chunk, 1);
}

}  // namespace
}  // namespace welkin::parallel
