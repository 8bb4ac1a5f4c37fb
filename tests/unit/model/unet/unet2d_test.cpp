// SPDX-License-Identifier: Apache-2.0
#include "model/unet/unet2d.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "gradient_check.h"

namespace welkin::model {
namespace {

TEST(Unet2d, NamesAreThoseOfPytorchUnet) {
  std::vector<std::string> names;
  for (const auto& parameter : Unet2d({.in_channels = 3, .out_channels = 2, .width = 2, .scales = 1}).named_parameters()) {
    if (parameter.value().dim() > 1) names.push_back(parameter.key());
  }
  EXPECT_EQ(names, (std::vector<std::string>{
                       "inc.double_conv.0.weight", "inc.double_conv.3.weight", "down1.maxpool_conv.1.double_conv.0.weight",
                       "down1.maxpool_conv.1.double_conv.3.weight", "up1.up.weight", "up1.conv.double_conv.0.weight",
                       "up1.conv.double_conv.3.weight", "outc.conv.weight"}));
}

TEST(Unet2d, SitesAreCalledInTheirOrder) {
  Unet2d unet({.in_channels = 3, .out_channels = 2, .width = 2, .scales = 2});
  unet.initialise(1);
  std::vector<std::string> listed, called;
  for (Site* site : unet.sites()) {
    listed.push_back(site->name());
    site->install([&called, name = site->name()](Tensors in, const Body& body) {
      called.push_back(name);
      return body(std::move(in));
    });
  }
  unet.forward(tests::test_values({1, 3, 8, 16}, 1).to(at::kFloat), {});
  EXPECT_EQ(called, listed);
}

TEST(Unet2d, GoesAroundTheGlobe) {
  Unet2d unet({.in_channels = 3, .out_channels = 2, .width = 4, .scales = 2});
  unet.initialise(1);
  const at::NoGradGuard no_grad;
  const at::Tensor x = tests::test_values({1, 3, 8, 16}, 1).to(at::kFloat);
  EXPECT_TRUE(tests::close(unet.forward(x.roll(4, 3), {}), unet.forward(x, {}).roll(4, 3), at::kFloat, 128));
}

TEST(Unet2d, GradientsOfItsConvolutionsAreRight) {
  PeriodicConv conv("0", 2, 3);
  DoublingConv up("up", 2, 3);
  for (torch::nn::Module* layer : std::initializer_list<torch::nn::Module*>{&conv, &up}) layer->to(at::kDouble);
  const at::NoGradGuard no_grad;
  conv.weight.copy_(tests::test_values(conv.weight.sizes(), 3));
  up.weight.copy_(tests::test_values(up.weight.sizes(), 4));
  up.bias.copy_(tests::test_values(up.bias.sizes(), 5));
  const at::AutoGradMode with_grad(true);
  const at::Tensor x = tests::test_values({2, 2, 3, 4}, 1);
  EXPECT_TRUE(tests::gradcheck([&](const std::vector<at::Tensor>& in) { return conv.forward(in[0]); }, {x, conv.weight}));
  EXPECT_TRUE(tests::gradcheck([&](const std::vector<at::Tensor>& in) { return up.forward(in[0]); }, {x, up.weight, up.bias}));
}

}  // namespace
}  // namespace welkin::model
