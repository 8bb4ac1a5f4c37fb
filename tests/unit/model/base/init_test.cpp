// SPDX-License-Identifier: Apache-2.0
// Initial values by their statistics: bounds are five standard errors of the statistic at the number of values.
#include "model/base/init.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "model/unet/unet3d.h"
#include "model/vit/vit.h"
#include "number_close.h"

namespace welkin::model {
namespace {

struct Moments {
  double mean, deviation, kurtosis, largest;
};

Moments moments_of(const at::Tensor& values) {
  const at::Tensor x = values.detach().to(at::kDouble);
  const double mean = x.mean().item<double>();
  const double variance = (x - mean).square().mean().item<double>();
  return {mean, std::sqrt(variance), (x - mean).square().square().mean().item<double>() / (variance * variance),
          x.abs().max().item<double>()};
}

constexpr const char* kFiveErrors = "five standard errors";

void expect_normal(const at::Tensor& values, double deviation) {
  const Moments m = moments_of(values);
  const auto n = static_cast<double>(values.numel());
  EXPECT_TRUE(tests::within(m.mean, 0.0, {5 * deviation / std::sqrt(n), kFiveErrors}));
  EXPECT_TRUE(tests::within(m.deviation, deviation, {5 * deviation / std::sqrt(2 * n), kFiveErrors}));
  EXPECT_TRUE(tests::within(m.kurtosis, 3.0, {5 * std::sqrt(24 / n), kFiveErrors}));
  EXPECT_LT(m.largest, 6.8 * deviation);
}

void expect_uniform(const at::Tensor& values, double bound) {
  const Moments m = moments_of(values);
  const auto n = static_cast<double>(values.numel());
  EXPECT_TRUE(tests::within(m.mean, 0.0, {5 * bound / std::sqrt(3 * n), kFiveErrors}));
  EXPECT_TRUE(tests::within(m.deviation, bound / std::sqrt(3.0), {5 * bound * std::sqrt(1.0 / (15 * n)), kFiveErrors}));
  EXPECT_TRUE(tests::within(m.kurtosis, 1.8, {5 * std::sqrt(1.4 / n), kFiveErrors}));
  EXPECT_LE(m.largest, bound);
}

TEST(Initial, VitHasTheTutorialsDistributions) {
  VitOptions options;
  options.height = options.width = 80;
  options.depth = 2;
  options.joint_qkv = true;
  Vit vit(options);
  vit.initialise(7);
  auto parameters = vit.named_parameters();
  expect_normal(parameters["pos_embed"], 0.02);
  for (const char* name : {"blocks.0.attn.qkv.weight", "blocks.1.attn.proj.weight", "blocks.0.mlp.fc1.weight",
                           "blocks.1.mlp.fc2.weight", "head.weight"}) {
    expect_normal(parameters[name], 0.02);
  }
  expect_uniform(parameters["patch_embed.proj.weight"], 1.0 / std::sqrt(20.0 * 8 * 8));
  EXPECT_LE(parameters["patch_embed.proj.bias"].abs().max().item<double>(), 1.0 / std::sqrt(20.0 * 8 * 8));
  EXPECT_GT(parameters["patch_embed.proj.bias"].abs().max().item<double>(), 0.02);
  for (const char* name : {"blocks.0.attn.qkv.bias", "blocks.0.mlp.fc1.bias", "norm.bias"}) {
    EXPECT_EQ(parameters[name].abs().max().item<double>(), 0.0) << name;
  }
  EXPECT_TRUE(parameters["blocks.1.norm2.weight"].eq(1).all().item<bool>());
}

TEST(Initial, UnetHasTheTutorialsDistributions) {
  Unet3d unet({.width = 16, .scales = 4});
  unet.initialise(7);
  for (const auto& parameter : unet.named_parameters()) {
    if (parameter.key().ends_with("weight")) {
      expect_normal(*parameter, 0.02);
    } else {
      EXPECT_EQ(parameter->abs().max().item<double>(), 0.0) << parameter.key();
    }
  }
}

TEST(Initial, UnetWithoutConstantBiasHasPytorchsDefault) {
  Unet3d unet({.width = 64, .scales = 2, .conv_deviation = 0.1, .conv_bias = std::nullopt});
  unet.initialise(7);
  auto parameters = unet.named_parameters();
  expect_normal(parameters["conv_down2.0.weight"], 0.1);
  const double down = 1.0 / std::sqrt(64.0 * 64);  // fan_in: 64 channels, 64 taps
  EXPECT_LE(parameters["conv_down2.0.bias"].abs().max().item<double>(), down);
  EXPECT_GT(parameters["conv_down2.0.bias"].abs().max().item<double>(), 0.8 * down);
  EXPECT_LE(parameters["conv_last.bias"].abs().max().item<double>(), 1.0 / std::sqrt(5.0 * 64));  // dim 1 of (128, 5, ...)
}

// One in 2e7 of the tutorials' weights starts at -2: here nothing lies beyond 6.8 deviations in forty million.
TEST(Initial, HasNoOutliers) {
  const at::Tensor many = at::empty({40'000'000});
  fill_normal(many, 3, "many", 0.02);
  EXPECT_LT(many.abs().max().item<double>(), 6.8 * 0.02);
}

TEST(Initial, IsAFunctionOfSeedNameAndElement) {
  const at::Tensor small = at::empty({10});
  const at::Tensor large = at::empty({7, 11});
  fill_normal(small, 3, "a", 1.0);
  fill_normal(large, 3, "a", 1.0);
  EXPECT_TRUE(at::equal(small, large.flatten().slice(0, 0, 10)));
  fill_normal(large, 3, "b", 1.0);
  EXPECT_FALSE(at::equal(small, large.flatten().slice(0, 0, 10)));
  fill_normal(large, 4, "a", 1.0);
  EXPECT_FALSE(at::equal(small, large.flatten().slice(0, 0, 10)));
}

// The values in the order of the shape, whatever the order of memory: weights of convolutions either way, with odd sizes.
TEST(Initial, FollowsTheShapeAndNotTheMemory) {
  const std::vector<std::vector<int64_t>> orders{{4, 3, 0, 1, 2}, {3, 4, 0, 1, 2}, {2, 1, 0, 3, 4}};
  const std::vector<std::vector<int64_t>> shapes{{4, 4, 4, 5, 130}, {3, 1, 3, 70, 7}};
  for (const std::vector<int64_t>& order : orders) {
    for (const std::vector<int64_t>& sizes : shapes) {
      const at::Tensor turned = at::empty(sizes).permute(order);
      const at::Tensor plain = at::empty(turned.sizes());
      fill_normal(turned, 3, "a", 0.5);
      fill_normal(plain, 3, "a", 0.5);
      EXPECT_TRUE(at::equal(turned, plain)) << turned.strides();
      fill_uniform(turned, 3, "a", 0.5);
      fill_uniform(plain, 3, "a", 0.5);
      EXPECT_TRUE(at::equal(turned, plain)) << turned.strides();
    }
  }
  const at::Tensor wide = at::empty({1001}, at::kDouble), single = at::empty({1001});
  fill_normal(wide, 3, "a", 0.5);
  fill_normal(single, 3, "a", 0.5);
  EXPECT_TRUE(at::equal(wide.to(at::kFloat), single));
}

TEST(Initial, IsTheSameForAnyNumberOfThreads) {
  const int before = at::get_num_threads();
  const at::Tensor one = at::empty({100'001});
  const at::Tensor two = at::empty({100'001});
  at::set_num_threads(1);
  fill_uniform(one, 3, "x", 1.0);
  at::set_num_threads(2);
  fill_uniform(two, 3, "x", 1.0);
  at::set_num_threads(before);
  EXPECT_TRUE(at::equal(one, two));
}

}  // namespace
}  // namespace welkin::model
