// SPDX-License-Identifier: Apache-2.0
// Every layer against central differences in double: gradients of the input and of each parameter.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/scalar_tensor.h>
#include <gtest/gtest.h>

#include "gradient_check.h"
#include "model/layers/conv3d.h"
#include "model/layers/dropout.h"
#include "model/layers/instance_norm.h"
#include "model/layers/layer_norm.h"
#include "model/layers/linear.h"
#include "model/layers/mlp.h"
#include "model/layers/patch_embed.h"
#include "model/layers/pointwise_conv.h"
#include "model/unet/unet3d.h"
#include "model/vit/vit.h"
#include "model/vit/vit_block.h"

namespace welkin::model {
namespace {

using tests::test_values;

// The layer in double, all its parameters spread in (-1, 1); its parameters follow the inputs in the list that is checked. The
// inputs are the module's own tensors, so that a changed element changes the layer.
template <typename LayerType, typename Forward>
testing::AssertionResult layer_gradients_are_right(LayerType& layer, const at::Tensor& input, Forward forward, double scale = 1) {
  layer.to(at::kDouble);
  std::vector<at::Tensor> inputs{input};
  uint64_t seed = 100;
  for (const auto& parameter : layer.named_parameters()) {
    const at::NoGradGuard no_grad;
    parameter->copy_(test_values(parameter->sizes(), ++seed).mul(scale));
    inputs.push_back(*parameter);
  }
  return tests::gradcheck([&](const std::vector<at::Tensor>& in) { return forward(in[0]); }, inputs);
}

ForwardContext training_context_of(int64_t batch) {
  return {.seed = 5, .step = at::scalar_tensor(int64_t{3}, at::kLong), .sample = at::arange(batch, at::kLong)};
}

TEST(LayerGradients, LinearWithAndWithoutBias) {
  for (const bool with_bias : {true, false}) {
    Linear layer("fc", 5, 3, with_bias);
    EXPECT_TRUE(
        layer_gradients_are_right(layer, test_values({2, 3, 5}, 1), [&](const at::Tensor& x) { return layer.forward(x); }));
  }
}

TEST(LayerGradients, LayerNorm) {
  LayerNorm layer("norm", 7);
  EXPECT_TRUE(layer_gradients_are_right(layer, test_values({2, 3, 7}, 1), [&](const at::Tensor& x) { return layer.forward(x); }));
}

TEST(LayerGradients, PatchEmbedding) {
  PatchEmbed layer("patch_embed", 2, 5, 3);
  EXPECT_TRUE(
      layer_gradients_are_right(layer, test_values({2, 2, 6, 9}, 1), [&](const at::Tensor& x) { return layer.forward(x); }));
}

TEST(LayerGradients, Unpatchify) {
  const auto image = [](const std::vector<at::Tensor>& in) { return unpatchify(in[0], 2, 2); };
  EXPECT_TRUE(tests::gradcheck(image, {test_values({2, 6, 12}, 1)}));
}

TEST(LayerGradients, AttentionOfBothLayouts) {
  for (const QkvLayout layout : {QkvLayout::Joint, QkvLayout::Separate}) {
    Attention layer("attn", {.width = 6, .num_heads = 2, .mlp_width = 8, .qkv = layout});
    EXPECT_TRUE(
        layer_gradients_are_right(layer, test_values({2, 5, 6}, 1), [&](const at::Tensor& x) { return layer.forward(x, {}); }));
  }
}

TEST(LayerGradients, Mlp) {
  Mlp layer("mlp", {.width = 4, .hidden = 7});
  EXPECT_TRUE(
      layer_gradients_are_right(layer, test_values({2, 3, 4}, 1), [&](const at::Tensor& x) { return layer.forward(x, {}); }));
}

TEST(LayerGradients, InstanceNorm) {
  InstanceNorm layer("norm0", 2);
  EXPECT_TRUE(
      layer_gradients_are_right(layer, test_values({2, 2, 3, 4}, 1), [&](const at::Tensor& x) { return layer.forward(x); }));
}

TEST(LayerGradients, PointwiseConvolutions) {
  PointwiseMlp layer("mlp", {.in = 3, .hidden = 5, .out = 2});
  EXPECT_TRUE(
      layer_gradients_are_right(layer, test_values({2, 3, 2, 4}, 1), [&](const at::Tensor& x) { return layer.forward(x); }));
}

TEST(LayerGradients, VitBlockWithDropoutAndDropPath) {
  for (const double rate : {0.0, 0.3}) {
    VitBlock layer("blocks.0", {.width = 6, .num_heads = 3, .mlp_width = 8, .dropout = rate, .drop_path = rate});
    layer.train();
    const ForwardContext context = training_context_of(3);
    EXPECT_TRUE(layer_gradients_are_right(layer, test_values({3, 4, 6}, 1), [&](const at::Tensor& x) {
      return layer.forward(x, context);
    })) << rate;
  }
}

TEST(LayerGradients, DropoutAndDropPath) {
  const ForwardContext context = training_context_of(4);
  Dropout dropout("drop", 0.4);
  DropPath path("path", 0.5);
  const auto dropped = [&](const std::vector<at::Tensor>& in) { return dropout.forward(in[0].square(), context); };
  const auto skipped = [&](const std::vector<at::Tensor>& in) { return path.forward(in[0].square(), context); };
  EXPECT_TRUE(tests::gradcheck(dropped, {test_values({4, 3, 5}, 1)}));
  EXPECT_TRUE(tests::gradcheck(skipped, {test_values({4, 3, 5}, 1)}));
}

TEST(LayerGradients, HalvingConvolution) {
  StridedConv3d layer("0", 2, 3, {});
  EXPECT_TRUE(layer_gradients_are_right(
      layer, test_values({2, 2, 2, 4, 6}, 1), [&](const at::Tensor& x) { return layer.forward(x); }, 0.25));
}

TEST(LayerGradients, DoublingConvolution) {
  TransposedConv3d layer("0", 2, 3, {});
  EXPECT_TRUE(layer_gradients_are_right(
      layer, test_values({2, 2, 1, 2, 3}, 1), [&](const at::Tensor& x) { return layer.forward(x); }, 0.25));
}

// With these values no entry crosses zero within a step of the difference.
TEST(LayerGradients, BlocksOfTheUnet) {
  DownBlock down("conv_down1", 2, 2, {});
  EXPECT_TRUE(layer_gradients_are_right(
      down, test_values({1, 2, 4, 2, 4}, 1), [&](const at::Tensor& x) { return down.forward(x); }, 0.25));
  UpBlock up("conv_up2", 2, 2, {});
  EXPECT_TRUE(layer_gradients_are_right(
      up, test_values({1, 2, 2, 1, 2}, 1), [&](const at::Tensor& x) { return up.forward({x}); }, 0.25));
}

TEST(LayerGradients, WholeVitWithPositionEmbedding) {
  Vit vit({.height = 4,
           .width = 6,
           .patch = 2,
           .in_channels = 2,
           .out_channels = 1,
           .embed_dim = 4,
           .depth = 1,
           .num_heads = 2,
           .mlp_width = 6});
  vit.eval();
  EXPECT_TRUE(
      layer_gradients_are_right(vit, test_values({2, 2, 4, 6}, 1), [&](const at::Tensor& x) { return vit.forward(x, {}); }));
}

TEST(LayerGradients, WholeUnet) {
  Unet3d unet({.in_channels = 2, .out_channels = 1, .width = 2, .scales = 2});
  EXPECT_TRUE(layer_gradients_are_right(
      unet, test_values({1, 2, 4, 4, 4}, 1), [&](const at::Tensor& x) { return unet.forward(x, {}); }, 0.25));
}

}  // namespace
}  // namespace welkin::model
