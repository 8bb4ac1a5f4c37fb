// SPDX-License-Identifier: Apache-2.0
// Segments of the built-in models: together they are the forward pass, and hold every parameter once.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/afno/afno.h"
#include "model/base/init.h"
#include "model/sfno/sfno.h"
#include "model/unet/unet3d.h"
#include "model/vit/vit.h"

namespace welkin::model {
namespace {

void expect_segments_are_the_model(Model& model, at::IntArrayRef input_shape, size_t count) {
  const at::NoGradGuard no_grad;
  model.initialise(3);
  model.train();
  const std::vector<Segment> segments = model.segments();
  EXPECT_EQ(segments.size(), count);
  for (const auto& parameter : model.named_parameters()) {
    EXPECT_EQ(std::ranges::count_if(segments, [&](const Segment& s) { return s.holds(parameter.key()); }), 1) << parameter.key();
  }
  const at::Tensor input = at::zeros(input_shape);
  fill_normal(input, 4, "input", 1.0);
  const ForwardContext context{
      .seed = 5, .step = at::scalar_tensor(2, at::kLong), .sample = at::arange(input_shape.front(), at::kLong)};
  Tensors tensors;
  for (const Segment& segment : segments) tensors = segment.run(std::move(tensors), input, context);
  ASSERT_EQ(tensors.size(), 1U);
  EXPECT_TRUE(at::equal(tensors.at(0), model.forward(input, context)));
}

TEST(Segments, OfTheVitAreItsBlocks) {
  for (const bool residual : {false, true}) {
    Vit vit({.height = 8,
             .width = 12,
             .patch = 4,
             .in_channels = 3,
             .out_channels = 2,
             .embed_dim = 8,
             .depth = 3,
             .num_heads = 2,
             .mlp_width = 32,
             .dropout = 0.2,
             .residual = residual});
    expect_segments_are_the_model(vit, {2, 3, 8, 12}, 3);
  }
}

TEST(Segments, OfTheAfnoAreItsBlocks) {
  Afno afno({.height = 8,
             .width = 12,
             .patch = 2,
             .in_channels = 3,
             .out_channels = 2,
             .embed_dim = 8,
             .depth = 3,
             .num_blocks = 4,
             .mlp_width = 16,
             .dropout = 0.2,
             .residual = true});
  expect_segments_are_the_model(afno, {2, 3, 8, 12}, 3);
}

TEST(Segments, OfTheSfnoAreItsBlocks) {
  Sfno sfno({.height = 8,
             .width = 16,
             .in_channels = 3,
             .out_channels = 2,
             .embed_dim = 4,
             .depth = 3,
             .scale_factor = 2,
             .mlp_width = 8,
             .dropout = 0.2});
  expect_segments_are_the_model(sfno, {2, 3, 8, 16}, 3);
}

TEST(Segments, OfTheUnetAreItsHalvingsAndDoublings) {
  Unet3d unet({.in_channels = 3, .out_channels = 2, .width = 2, .scales = 3});
  expect_segments_are_the_model(unet, {2, 3, 16, 16, 16}, 5);
}

}  // namespace
}  // namespace welkin::model
