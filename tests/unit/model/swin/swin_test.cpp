// SPDX-License-Identifier: Apache-2.0
#include "model/swin/swin.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "gradient_check.h"
#include "model/base/init.h"

namespace welkin::model {
namespace {

SwinOptions tiny_swin() {
  return {.height = 8,
          .width = 16,
          .patch = 2,
          .in_channels = 3,
          .out_channels = 2,
          .embed_dim = 8,
          .depth = 2,
          .num_heads = 2,
          .mlp_width = 16,
          .window_rows = 2,
          .window_columns = 4};
}

void spread_swin(Swin& swin) {
  const at::NoGradGuard no_grad;
  swin.initialise(1);
  for (auto& parameter : swin.named_parameters()) fill_normal(*parameter, 2, parameter.key(), 0.3);
}

TEST(Swin, SitesStandInTheOrderOfTheForwardPass) {
  Swin swin(tiny_swin());
  swin.initialise(1);
  std::vector<std::string> listed, called;
  for (Site* site : swin.sites()) {
    listed.push_back(site->name());
    site->install([&called, name = site->name()](Tensors in, const Body& body) {
      called.push_back(name);
      return body(std::move(in));
    });
  }
  swin.forward(tests::test_values({1, 3, 8, 16}, 1).to(at::kFloat), {});
  EXPECT_EQ(called, listed);
}

// Turned by whole windows the field gives the turned result: longitude is a circle, and weights do not know it.
TEST(Swin, GoesAroundTheGlobe) {
  Swin swin(tiny_swin());
  spread_swin(swin);
  const at::NoGradGuard no_grad;
  const at::Tensor x = tests::test_values({1, 3, 8, 16}, 1).to(at::kFloat);
  EXPECT_TRUE(tests::close(swin.forward(x.roll(8, 3), {}), swin.forward(x, {}).roll(8, 3), at::kFloat, 8));
}

// What changes at the north pole does not reach the south pole by a shifted window.
TEST(Swin, WindowsEndAtThePoles) {
  SwinOptions options = tiny_swin();
  options.height = 16;
  Swin swin(options);
  spread_swin(swin);
  const at::NoGradGuard no_grad;
  const at::Tensor x = tests::test_values({1, 3, 16, 16}, 1).to(at::kFloat);
  const at::Tensor changed = x.clone();
  changed.narrow(2, 0, 2).add_(1);
  const at::Tensor south = swin.forward(x, {}).narrow(2, 8, 8), after = swin.forward(changed, {}).narrow(2, 8, 8);
  EXPECT_TRUE(at::equal(south, after));
}

TEST(Swin, GradientsOfShiftedWindowsAreRight) {
  SwinOptions options = tiny_swin();
  options.embed_dim = 4;
  WindowAttention attention("attn", options, /*is_shifted=*/true);
  attention.to(at::kDouble);
  std::vector<at::Tensor> inputs{tests::test_values({1, 32, 4}, 1)};
  uint64_t seed = 3;
  for (const auto& parameter : attention.named_parameters()) {
    const at::NoGradGuard no_grad;
    parameter->copy_(tests::test_values(parameter->sizes(), ++seed));
    inputs.push_back(*parameter);
  }
  EXPECT_TRUE(tests::gradcheck([&](const std::vector<at::Tensor>& in) { return attention.forward(in[0], {}); }, inputs));
}

}  // namespace
}  // namespace welkin::model
