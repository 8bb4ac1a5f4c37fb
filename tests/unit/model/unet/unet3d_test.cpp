// SPDX-License-Identifier: Apache-2.0
#include "model/unet/unet3d.h"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "model/base/describe.h"

namespace welkin::model {
namespace {

TEST(Unet3d, NamesAndShapesOfTheTutorial) {
  const Unet3d unet(Unet3dOptions{});
  std::vector<std::string> names;
  std::vector<std::vector<int64_t>> shapes;
  for (const auto& parameter : unet.named_parameters()) {
    if (!parameter.key().ends_with("weight")) continue;
    names.push_back(parameter.key());
    shapes.push_back({parameter->size(0), parameter->size(1)});
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"conv_down1.0.weight", "conv_down2.0.weight", "conv_down3.0.weight", "conv_down4.0.weight",
                                      "conv_down5.0.weight", "conv_down6.0.weight", "conv_up6.0.weight", "conv_up5.0.weight",
                                      "conv_up4.0.weight", "conv_up3.0.weight", "conv_up2.0.weight", "conv_last.weight"}));
  EXPECT_EQ(shapes, (std::vector<std::vector<int64_t>>{{64, 4},
                                                       {128, 64},
                                                       {256, 128},
                                                       {512, 256},
                                                       {512, 512},
                                                       {512, 512},
                                                       {512, 512},
                                                       {1024, 512},
                                                       {1024, 256},
                                                       {512, 128},
                                                       {256, 64},
                                                       {128, 5}}));
}

TEST(Unet3d, AnyNumberOfScalesKeepsTheShapeOfTheBox) {
  for (int64_t scales = 2; scales <= 5; ++scales) {
    Unet3d unet({.in_channels = 3, .out_channels = 2, .width = 2, .scales = scales});
    unet.initialise(1);
    const at::Tensor out = unet.forward(at::ones({1, 3, 32, 32, 64}), {});
    EXPECT_EQ(out.sizes(), (std::vector<int64_t>{1, 2, 32, 32, 64})) << scales;
    EXPECT_LE(out.abs().max().item<float>(), 1.0F);
  }
}

TEST(Unet3d, SitesAreCalledInTheirOrder) {
  Unet3d unet({.width = 2, .scales = 3});
  unet.initialise(1);
  std::vector<std::string> listed, called;
  for (Site* site : unet.sites()) {
    listed.push_back(site->name());
    site->install([&called, name = site->name()](Tensors in, const Body& body) {
      called.push_back(name);
      return body(std::move(in));
    });
  }
  unet.forward(at::ones({1, 4, 8, 8, 8}), {});
  EXPECT_EQ(called, listed);
  EXPECT_EQ(called, (std::vector<std::string>{"conv_down1", "levels.2", "conv_down2", "levels.3", "conv_down3", "conv_up3",
                                              "conv_up2", "conv_last"}));
}

TEST(Describe, PrintsTheTree) {
  const Unet3d unet({.width = 2, .scales = 2});
  EXPECT_EQ(describe(unet),
            "Unet3d(\n"
            "  (conv_down1): DownBlock(\n"
            "    (0): Conv3d(4, 2, kernel_size=(4, 4, 4), stride=(2, 2, 2), padding=(1, 1, 1))\n"
            "  )\n"
            "  (conv_down2): DownBlock(\n"
            "    (0): Conv3d(2, 4, kernel_size=(4, 4, 4), stride=(2, 2, 2), padding=(1, 1, 1))\n"
            "  )\n"
            "  (conv_up2): UpBlock(\n"
            "    (0): ConvTranspose3d(4, 2, kernel_size=(4, 4, 4), stride=(2, 2, 2), padding=(1, 1, 1))\n"
            "  )\n"
            "  (conv_last): ConvTranspose3d(4, 5, kernel_size=(4, 4, 4), stride=(2, 2, 2), padding=(1, 1, 1))\n"
            ")");
}

}  // namespace
}  // namespace welkin::model
