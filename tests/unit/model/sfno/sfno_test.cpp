// SPDX-License-Identifier: Apache-2.0
#include "model/sfno/sfno.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "gradient_check.h"
#include "model/base/init.h"

namespace welkin::model {
namespace {

SfnoOptions tiny_sfno() {
  return {.height = 8,
          .width = 16,
          .in_channels = 3,
          .out_channels = 2,
          .embed_dim = 4,
          .depth = 2,
          .scale_factor = 2,
          .mlp_width = 8};
}

TEST(Sfno, NamesAreThoseOfMakani) {
  SfnoOptions options = tiny_sfno();
  options.depth = 1;
  std::vector<std::string> names;
  for (const auto& parameter : Sfno(options).named_parameters()) names.push_back(parameter.key());
  EXPECT_EQ(names, (std::vector<std::string>{"encoder.fwd.0.weight", "encoder.fwd.0.bias", "encoder.fwd.2.weight",
                                             "blocks.0.norm0.weight", "blocks.0.norm0.bias", "blocks.0.filter.filter.weight",
                                             "blocks.0.norm1.weight", "blocks.0.norm1.bias", "blocks.0.outer_skip.weight",
                                             "blocks.0.mlp.fwd.0.weight", "blocks.0.mlp.fwd.0.bias", "blocks.0.mlp.fwd.2.weight",
                                             "blocks.0.mlp.fwd.2.bias", "decoder.fwd.0.weight", "decoder.fwd.0.bias",
                                             "decoder.fwd.2.weight", "residual_transform.weight"}));
}

TEST(Sfno, SitesStandInTheOrderOfTheForwardPass) {
  Sfno sfno(tiny_sfno());
  sfno.initialise(1);
  std::vector<std::string> listed, called;
  for (Site* site : sfno.sites()) {
    listed.push_back(site->name());
    site->install([&called, name = site->name()](Tensors in, const Body& body) {
      called.push_back(name);
      return body(std::move(in));
    });
  }
  sfno.forward(tests::test_values({1, 3, 8, 16}, 1).to(at::kFloat), {});
  EXPECT_EQ(called, listed);
}

// Turning the globe about its axis turns the result, by whole steps of the coarser grid; that of a ViT would change.
TEST(Sfno, CommutesWithRotationsAboutTheAxis) {
  Sfno sfno(tiny_sfno());
  sfno.initialise(3);
  const at::NoGradGuard no_grad;
  const at::Tensor x = tests::test_values({1, 3, 8, 16}, 1).to(at::kFloat);
  EXPECT_TRUE(tests::close(sfno.forward(x.roll(6, 3), {}), sfno.forward(x, {}).roll(6, 3), at::kFloat, 8 * 16));
}

TEST(Sfno, GradientsOfTheSpectralConvolutionAreRight) {
  const SfnoOptions options = tiny_sfno();
  const auto transform = std::make_shared<const ops::SphericalTransform>(
      ops::SphericalGrid{4, 8, options.degrees(), options.orders(), ops::LatitudeGrid::LegendreGauss});
  SpectralFilter filter("filter", options, {transform, transform});
  filter.to(at::kDouble);
  std::vector<at::Tensor> inputs{tests::test_values({2, 4, 4, 8}, 1)};
  for (const auto& parameter : filter.named_parameters()) {
    const at::NoGradGuard no_grad;
    parameter->copy_(tests::test_values(parameter->sizes(), 5));
    inputs.push_back(*parameter);
  }
  EXPECT_TRUE(tests::gradcheck([&](const std::vector<at::Tensor>& in) { return filter.forward(in[0]).filtered; }, inputs));
}

}  // namespace
}  // namespace welkin::model
