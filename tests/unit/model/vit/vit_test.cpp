// SPDX-License-Identifier: Apache-2.0
#include "model/vit/vit.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "device_on_cpu.h"
#include "model/base/init.h"
#include "tolerance.h"

namespace welkin::model {
namespace {

VitOptions tiny_vit() {
  return {.height = 8,
          .width = 12,
          .patch = 4,
          .in_channels = 3,
          .out_channels = 2,
          .embed_dim = 8,
          .depth = 2,
          .num_heads = 2,
          .mlp_width = 32};
}

at::Tensor random_field(at::IntArrayRef shape, uint64_t seed) {
  const at::Tensor field = at::ones(shape);
  fill_normal(field, seed, "field", 1.0);
  return field;
}

// Weights far from their small initial values, so that every branch shows in the output.
void spread_weights(Model& model) {
  const at::NoGradGuard no_grad;
  model.initialise(1);
  for (auto& parameter : model.named_parameters()) fill_normal(*parameter, 2, parameter.key(), 0.3);
}

ForwardContext training_context(std::vector<int64_t> range, int64_t step = 0) {
  return {.seed = 5, .step = at::scalar_tensor(step, at::kLong), .sample = at::arange(range.at(0), range.at(1), at::kLong)};
}

std::vector<std::string> parameter_names(const Model& model) {
  std::vector<std::string> names;
  for (const auto& parameter : model.named_parameters()) names.push_back(parameter.key());
  return names;
}

TEST(Vit, ParameterNamesAndOrderOfSeparateQkv) {
  VitOptions options = tiny_vit();
  options.depth = 1;
  const std::vector<std::string> wanted{"pos_embed",
                                        "patch_embed.proj.weight",
                                        "patch_embed.proj.bias",
                                        "blocks.0.norm1.weight",
                                        "blocks.0.norm1.bias",
                                        "blocks.0.norm2.weight",
                                        "blocks.0.norm2.bias",
                                        "blocks.0.attn.q.weight",
                                        "blocks.0.attn.q.bias",
                                        "blocks.0.attn.k.weight",
                                        "blocks.0.attn.k.bias",
                                        "blocks.0.attn.v.weight",
                                        "blocks.0.attn.v.bias",
                                        "blocks.0.attn.proj.weight",
                                        "blocks.0.attn.proj.bias",
                                        "blocks.0.mlp.fc1.weight",
                                        "blocks.0.mlp.fc1.bias",
                                        "blocks.0.mlp.fc2.weight",
                                        "blocks.0.mlp.fc2.bias",
                                        "norm.weight",
                                        "norm.bias",
                                        "head.weight"};
  EXPECT_EQ(parameter_names(Vit(options)), wanted);
}

TEST(Vit, ParameterNamesAndOrderOfJointQkv) {
  VitOptions options = tiny_vit();
  options.depth = 1;
  options.joint_qkv = true;
  const std::vector<std::string> wanted{"pos_embed",
                                        "patch_embed.proj.weight",
                                        "patch_embed.proj.bias",
                                        "blocks.0.attn.qkv.weight",
                                        "blocks.0.attn.qkv.bias",
                                        "blocks.0.attn.proj.weight",
                                        "blocks.0.attn.proj.bias",
                                        "blocks.0.norm1.weight",
                                        "blocks.0.norm1.bias",
                                        "blocks.0.norm2.weight",
                                        "blocks.0.norm2.bias",
                                        "blocks.0.mlp.fc1.weight",
                                        "blocks.0.mlp.fc1.bias",
                                        "blocks.0.mlp.fc2.weight",
                                        "blocks.0.mlp.fc2.bias",
                                        "norm.weight",
                                        "norm.bias",
                                        "head.weight"};
  EXPECT_EQ(parameter_names(Vit(options)), wanted);
}

TEST(Vit, JointAndSeparateAreTheSameFunction) {
  Vit separate(tiny_vit());
  spread_weights(separate);
  VitOptions options = tiny_vit();
  options.joint_qkv = true;
  Vit joint(options);
  const at::NoGradGuard no_grad;
  const auto source = separate.named_parameters();
  for (auto& parameter : joint.named_parameters()) {
    const size_t at = parameter.key().find("qkv");
    if (at == std::string::npos) {
      parameter->copy_(source[parameter.key()]);
      continue;
    }
    std::vector<at::Tensor> parts;
    for (const char* part : {"q", "k", "v"}) parts.push_back(source[std::string(parameter.key()).replace(at, 3, part)]);
    parameter->copy_(at::cat(parts));
  }
  const at::Tensor x = random_field({2, 3, 8, 12}, 3);
  EXPECT_TRUE(tests::close(joint.forward(x, {}), separate.forward(x, {}), at::kFloat, 32));
}

TEST(Vit, SitesStandInTheOrderOfTheForwardPass) {
  VitOptions options = tiny_vit();
  options.depth = 1;
  Vit vit(options);
  vit.initialise(1);
  std::vector<std::string> listed;
  std::vector<std::string> called;
  for (Site* site : vit.sites()) {
    listed.push_back(site->name());
    site->install([&called, name = site->name()](Tensors in, const Body& body) {
      called.push_back(name);
      return body(std::move(in));
    });
  }
  vit.forward(random_field({1, 3, 8, 12}, 1), {});
  EXPECT_EQ(called, listed);
  const std::vector<std::string> wanted{"patch_embed",        "positions",
                                        "tokens.in",          "blocks.0",
                                        "blocks.0.norm1",     "blocks.0.attn",
                                        "blocks.0.attn.in",   "blocks.0.attn.q",
                                        "blocks.0.attn.k",    "blocks.0.attn.v",
                                        "blocks.0.attn.core", "blocks.0.attn.proj",
                                        "blocks.0.norm2",     "blocks.0.mlp",
                                        "blocks.0.mlp.in",    "blocks.0.mlp.fc1",
                                        "blocks.0.mlp.fc2",   "norm",
                                        "tokens.out",         "head"};
  EXPECT_EQ(called, wanted);
}

TEST(Vit, ALinearsSiteIsItsMatmulBeforeTheBias) {
  Linear linear("fc", 4, 3);
  fill_constant(linear.weight, 1.0);
  fill_constant(linear.bias, 10.0);
  const at::Tensor x = at::ones({2, 4});
  EXPECT_FLOAT_EQ(linear.forward(x).max().item<float>(), 14.0F);
  linear.own_sites().at(0)->install([](Tensors in, const Body& body) { return Tensors{body(std::move(in)).at(0).mul(2)}; });
  EXPECT_FLOAT_EQ(linear.forward(x).max().item<float>(), 18.0F);
}

TEST(Vit, ALayerWithAPartOfTheHeadsRunsTheSameCode) {
  const VitBlockOptions options{.width = 8, .num_heads = 4, .mlp_width = 16};
  Attention whole("attn", options);
  Attention part("attn", options);
  const at::NoGradGuard no_grad;
  for (auto& parameter : whole.named_parameters()) fill_normal(*parameter, 1, parameter.key(), 0.5);
  const at::Tensor x = random_field({2, 5, 8}, 1);
  at::Tensor sum;
  for (int64_t shard = 0; shard < 2; ++shard) {
    for (auto& parameter : part.named_parameters()) {
      const at::Tensor full = whole.named_parameters()[parameter.key()];
      const bool row_split = parameter.key() == "proj.weight";
      const bool replicated = parameter.key() == "proj.bias";
      const at::Tensor local = replicated ? full.mul(0.5) : full.narrow(row_split ? 1 : 0, shard * 4, 4);
      parameter->set_data(local.contiguous());
    }
    const at::Tensor out = part.forward(x, {});
    sum = sum.defined() ? sum + out : out;
  }
  EXPECT_TRUE(tests::close(sum, whole.forward(x, {}), at::kFloat, 8));
}

TEST(Vit, ResidualAddsTheNewestInputStep) {
  VitOptions options = tiny_vit();
  options.newest_input_channel = 1;
  Vit plain(options);
  options.residual = true;
  Vit residual(options);
  plain.initialise(4);
  residual.initialise(4);
  const at::Tensor x = random_field({2, 3, 8, 12}, 3);
  EXPECT_TRUE(at::equal(residual.forward(x, {}), plain.forward(x, {}).add(x.narrow(1, 1, 2))));
}

// The MLP's first bias joins GELU there, also where something stands at the sites of its matmuls.
TEST(Vit, ByTheWayOfAGpuIsTheSameFunction) {
  const at::Tensor x = random_field({2, 3, 8, 12}, 3);
  for (const bool has_wrappers : {false, true}) {
    Vit wanted(tiny_vit()), got(tiny_vit());
    for (Vit* vit : {&wanted, &got}) spread_weights(*vit);
    if (has_wrappers) {
      for (Site* site : got.sites()) site->install([](Tensors in, const Body& body) { return body(std::move(in)); });
    }
    wanted.forward(x, {}).square().sum().backward();
    const tests::BiasGeluOnCpu on_cpu;
    got.forward(x, {}).square().sum().backward();
    EXPECT_EQ(on_cpu.calls(), 4) << "two blocks, forward and backward";
    for (const auto& parameter : wanted.named_parameters()) {
      if (parameter.key().ends_with("attn.k.bias")) continue;  // moves all weights of a query alike: its gradient is rounding
      EXPECT_TRUE(tests::close(got.named_parameters()[parameter.key()].grad(), parameter->grad(), at::kFloat, 384))
          << parameter.key();
    }
  }
}

// Every norm is a kernel of ours there, with the residual sum before it or alone, and makes what the matmuls take.
TEST(Vit, NormsByTheWayOfAGpuAreTheSameFunction) {
  const at::Tensor x = random_field({2, 3, 8, 12}, 3);
  Vit wanted(tiny_vit()), got(tiny_vit());
  for (Vit* vit : {&wanted, &got}) spread_weights(*vit);
  wanted.forward(x, {}).square().sum().backward();
  const tests::ResidualNormOnCpu on_cpu;
  got.forward(x, {}).square().sum().backward();
  EXPECT_EQ(on_cpu.calls(), 10) << "two norms of two blocks and the last, forward and backward";
  for (const auto& parameter : wanted.named_parameters()) {
    if (parameter.key().ends_with("attn.k.bias")) continue;
    EXPECT_TRUE(tests::close(got.named_parameters()[parameter.key()].grad(), parameter->grad(), at::kFloat, 384))
        << parameter.key();
  }
}

TEST(VitDropout, IsOffInEvaluationEvenInAttention) {
  VitOptions options = tiny_vit();
  options.dropout = 0.5;
  Vit dropping(options);
  Vit plain(tiny_vit());
  spread_weights(dropping);
  spread_weights(plain);
  const at::Tensor x = random_field({2, 3, 8, 12}, 3);
  dropping.eval();
  EXPECT_TRUE(at::equal(dropping.forward(x, {}), plain.forward(x, {})));
  dropping.train();
  EXPECT_FALSE(at::equal(dropping.forward(x, training_context({0, 2})), plain.forward(x, {})));
}

TEST(VitDropout, DoesNotDependOnHowABatchIsSplit) {
  VitOptions options = tiny_vit();
  options.dropout = 0.3;
  Vit vit(options);
  spread_weights(vit);
  const at::Tensor x = random_field({4, 3, 8, 12}, 3);
  const at::Tensor whole = vit.forward(x, training_context({10, 14}));
  const at::Tensor halves = at::cat(
      {vit.forward(x.narrow(0, 0, 2), training_context({10, 12})), vit.forward(x.narrow(0, 2, 2), training_context({12, 14}))});
  EXPECT_TRUE(tests::close(whole, halves, at::kFloat, 32));
  EXPECT_FALSE(tests::close(whole, vit.forward(x, training_context({10, 14}, 1)), at::kFloat, 32));
}

TEST(VitDropout, RecomputationInABlockGivesTheSameGradient) {
  VitOptions options = tiny_vit();
  options.dropout = 0.3;
  Vit vit(options);
  spread_weights(vit);
  const at::Tensor x = random_field({2, 3, 8, 12}, 3);
  const at::Tensor once = vit.forward(x, training_context({0, 2}));
  for (Site* site : vit.sites()) {  // the body may be called again: the second result must be the first
    site->install([](Tensors in, const Body& body) {
      body(in);
      return body(std::move(in));
    });
  }
  EXPECT_TRUE(tests::close(once, vit.forward(x, training_context({0, 2})), at::kFloat, 32));
}

}  // namespace
}  // namespace welkin::model
