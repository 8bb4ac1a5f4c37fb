// SPDX-License-Identifier: Apache-2.0
#include "train/device/attention_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace welkin::train {
namespace {

using ops::AttentionBackend;
using ::testing::HasSubstr;

constexpr model::AttentionSize kSize{.heads = 8, .head_dim = 48, .tokens = 4050};

config::RunConfig small_vit() {
  config::RunConfig config;
  config.model.model = "vit";
  config.loop.global_batch_size = 64;
  config.precision.amp_mode = config::AmpMode::Bf16;
  return config;
}

std::vector<ops::AttentionTiming> cudnn_is_fastest() {
  return {{AttentionBackend::Flash, 2e-3},
          {AttentionBackend::MemoryEfficient, {}},
          {AttentionBackend::CuDnn, 1e-3},
          {AttentionBackend::Math, 8e-3}};
}

TEST(AttentionChoice, ShapeIsThatOfAForwardPass) {
  const auto shape = attention_shape(small_vit(), kSize, 2);
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->batch, 4);
  EXPECT_EQ(shape->heads, 4);
  EXPECT_EQ(shape->tokens, 4050);
  EXPECT_EQ(shape->head_dim, 48);
  EXPECT_EQ(shape->dtype, at::kBFloat16);
  config::RunConfig config = small_vit();
  config.model.dropout = 0.1;
  EXPECT_FALSE(attention_shape(config, kSize, 1)) << "its tiles are our own";
  EXPECT_FALSE(attention_shape(small_vit(), std::nullopt, 1)) << "the model has none, or does not say";
  config = small_vit();
  config.loop.local_batch_size = 2;  // of 32 ranks
  EXPECT_EQ(attention_shape(config, kSize, 1)->batch, 2);
}

TEST(AttentionChoice, IsTheFastestAndSaysWhy) {
  config::RunConfig config = small_vit();
  const auto shape = *attention_shape(config, kSize, 1);
  const AttentionChoice choice = resolve_attention(config, shape, cudnn_is_fastest);
  EXPECT_EQ(choice.backend, AttentionBackend::CuDnn);
  EXPECT_EQ(choice.line,
            "Attention: cudnn (batch 4, 8 heads of 48, 4050 tokens: flash 2.00 ms, memory_efficient cannot, cudnn 1.00 ms, math "
            "8.00 ms)");
  config.backend.attention = config::AttentionForm::Flash;
  const AttentionChoice forced = resolve_attention(config, shape, cudnn_is_fastest);
  EXPECT_EQ(forced.backend, AttentionBackend::Flash);
  EXPECT_THAT(forced.line, HasSubstr("Attention: flash (as asked for; batch 4"));
}

TEST(AttentionChoice, ThePlainFormCanBeAskedForWithoutATime) {
  config::RunConfig config = small_vit();
  config.backend.attention = config::AttentionForm::Math;
  const auto measure = [] {
    return std::vector<ops::AttentionTiming>{{AttentionBackend::Flash, 2e-3},
                                             {AttentionBackend::Math, {}, /*is_too_large=*/true}};
  };
  EXPECT_EQ(resolve_attention(config, *attention_shape(config, kSize, 1), measure).backend, AttentionBackend::Math);
}

TEST(AttentionChoice, WhatCannotRunIsAnError) {
  config::RunConfig config = small_vit();
  const auto shape = *attention_shape(config, kSize, 1);
  config.backend.attention = config::AttentionForm::MemoryEfficient;
  EXPECT_THAT([&] { resolve_attention(config, shape, cudnn_is_fastest); },
              ::testing::ThrowsMessage<ConfigError>(
                  HasSubstr("[train] this form of attention cannot run here: attention=memory_efficient, batch 4")));
  config.backend.attention = config::AttentionForm::Auto;
  EXPECT_THAT([&] { resolve_attention(config, shape, [] { return std::vector<ops::AttentionTiming>{}; }); },
              ::testing::ThrowsMessage<ConfigError>(HasSubstr("no form of attention can run here")));
}

TEST(AttentionChoice, OfADeterministicRunIsNotMeasured) {
  config::RunConfig config = small_vit();
  config.loop.deterministic = true;
  const auto never = []() -> std::vector<ops::AttentionTiming> {
    ADD_FAILURE() << "measured";
    return {};
  };
  EXPECT_EQ(resolve_attention(config, *attention_shape(config, kSize, 1), never).backend, AttentionBackend::Flash);
  config.precision.amp_mode = config::AmpMode::None;
  EXPECT_EQ(resolve_attention(config, *attention_shape(config, kSize, 1), never).backend, AttentionBackend::Math);
  EXPECT_EQ(choose_attention(config, kSize, 1, at::kCPU, {}), "");
}

}  // namespace
}  // namespace welkin::train
