// SPDX-License-Identifier: Apache-2.0
#include "model/afno/afno.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "gradient_check.h"
#include "model/base/init.h"
#include "ops/base/autocast.h"

namespace welkin::model {
namespace {

AfnoOptions tiny_afno() {
  return {.height = 8,
          .width = 12,
          .patch = 2,
          .in_channels = 3,
          .out_channels = 2,
          .embed_dim = 8,
          .depth = 2,
          .num_blocks = 4,
          .mlp_width = 16};
}

void spread_afno(Model& model, double deviation = 0.3) {
  const at::NoGradGuard no_grad;
  model.initialise(1);
  for (auto& parameter : model.named_parameters()) fill_normal(*parameter, 2, parameter.key(), deviation);
}

at::Tensor some_field(at::IntArrayRef shape) { return tests::test_values(shape, 7).to(at::kFloat); }

TEST(Afno, NamesAreThoseOfFourCastNet) {
  AfnoOptions options = tiny_afno();
  options.depth = 1;
  std::vector<std::string> names;
  for (const auto& parameter : Afno(options).named_parameters()) names.push_back(parameter.key());
  EXPECT_EQ(names, (std::vector<std::string>{
                       "pos_embed", "patch_embed.proj.weight", "patch_embed.proj.bias", "blocks.0.norm1.weight",
                       "blocks.0.norm1.bias", "blocks.0.filter.w1", "blocks.0.filter.b1", "blocks.0.filter.w2",
                       "blocks.0.filter.b2", "blocks.0.norm2.weight", "blocks.0.norm2.bias", "blocks.0.mlp.fc1.weight",
                       "blocks.0.mlp.fc1.bias", "blocks.0.mlp.fc2.weight", "blocks.0.mlp.fc2.bias", "head.weight"}));
}

TEST(Afno, SitesStandInTheOrderOfTheForwardPass) {
  AfnoOptions options = tiny_afno();
  options.depth = 1;
  Afno afno(options);
  afno.initialise(1);
  std::vector<std::string> listed, called;
  for (Site* site : afno.sites()) {
    listed.push_back(site->name());
    site->install([&called, name = site->name()](Tensors in, const Body& body) {
      called.push_back(name);
      return body(std::move(in));
    });
  }
  afno.forward(some_field({1, 3, 8, 12}), {});
  EXPECT_EQ(called, listed);
  EXPECT_EQ(called, (std::vector<std::string>{"patch_embed", "positions", "tokens.in", "blocks.0", "blocks.0.norm1",
                                              "blocks.0.filter", "blocks.0.norm2", "blocks.0.mlp", "blocks.0.mlp.in",
                                              "blocks.0.mlp.fc1", "blocks.0.mlp.fc2", "tokens.out", "head"}));
}

// Central differences do not cross the kinks of ReLU and shrinkage with these values.
TEST(Afno, GradientsOfTheFilterAreRight) {
  AfnoOptions options = tiny_afno();
  options.height = 6;
  options.width = 10;
  options.num_blocks = 2;
  options.embed_dim = 4;
  AfnoFilter filter("filter", options);
  filter.to(at::kDouble);
  std::vector<at::Tensor> inputs{tests::test_values({2, 15, 4}, 1)};
  uint64_t seed = 10;
  for (const auto& parameter : filter.named_parameters()) {
    const at::NoGradGuard no_grad;
    parameter->copy_(tests::test_values(parameter->sizes(), ++seed));
    inputs.push_back(*parameter);
  }
  EXPECT_TRUE(tests::gradcheck([&](const std::vector<at::Tensor>& in) { return filter.forward(in[0]); }, inputs));
}

TEST(Afno, AFilterWithSomeBlocksRunsTheSameCode) {
  const AfnoOptions options = tiny_afno();
  AfnoFilter whole("filter", options);
  const at::NoGradGuard no_grad;
  for (auto& parameter : whole.named_parameters()) fill_normal(*parameter, 3, parameter.key(), 0.5);
  const at::Tensor x = some_field({2, 24, 8});
  std::vector<at::Tensor> parts;
  for (int64_t half = 0; half < 2; ++half) {
    AfnoFilter part("filter", options);
    for (auto& parameter : part.named_parameters()) {
      parameter->set_data(whole.named_parameters()[parameter.key()].narrow(1, 2 * half, 2).contiguous());
    }
    parts.push_back(part.forward(x.narrow(2, 4 * half, 4)));
  }
  EXPECT_TRUE(tests::close(at::cat(parts, 2), whole.forward(x), at::kFloat, 24));
}

TEST(Afno, TheFilterIsInFloat32UnderAutocast) {
  AfnoFilter filter("filter", tiny_afno());
  filter.initialise(1);
  const at::NoGradGuard no_grad;
  const at::Tensor x = some_field({2, 24, 8});
  const at::Tensor plain = filter.forward(x);
  const ops::AutocastGuard autocast(at::kCPU, at::kBFloat16);
  EXPECT_TRUE(at::equal(filter.forward(x), plain));
}

TEST(Afno, ResidualAddsTheNewestInputStep) {
  AfnoOptions options = tiny_afno();
  options.newest_input_channel = 1;
  Afno plain(options);
  options.residual = true;
  Afno residual(options);
  for (Afno* afno : {&plain, &residual}) spread_afno(*afno);
  const at::Tensor x = some_field({2, 3, 8, 12});
  EXPECT_TRUE(at::equal(residual.forward(x, {}), plain.forward(x, {}).add(x.narrow(1, 1, 2))));
}

}  // namespace
}  // namespace welkin::model
