// SPDX-License-Identifier: Apache-2.0
// Losses with weights against the same fields cut out by hand, and against sums written out.
#include "train/learn/weighted_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <limits>

#include "core/error.h"
#include "gradient_check.h"
#include "train/learn/channel_weights.h"

namespace welkin::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

constexpr double kHole = std::numeric_limits<double>::quiet_NaN();

std::vector<LossPtr> all_losses() {
  std::vector<LossPtr> losses;
  for (LossPtr& loss : std::array{relative_l2(), l1_rho(0.0), l1_rho(0.01), mean_square(), mean_absolute()}) {
    losses.push_back(std::move(loss));
  }
  return losses;
}

LossPtr with_holes(LossPtr loss) { return weighted_loss(std::move(loss), {.holes = true}, "of the test"); }

// All of one channel: columns 0 to 2 of 6 have a value.
at::Tensor half_missing(const at::Tensor& target) {
  at::Tensor values = target.clone();
  values.narrow(-1, 3, 3).fill_(kHole);
  return values;
}

TEST(WeightedLoss, EqualsTheFieldCutOutByHand) {
  const at::Tensor p = tests::test_values({3, 2, 4, 6}, 1).mul(0.1), t = tests::test_values({3, 2, 4, 6}, 2).mul(0.1);
  std::vector<LossPtr> cut = all_losses(), whole = all_losses();
  for (size_t i = 0; i < cut.size(); ++i) {
    const LossPtr masked = with_holes(std::move(whole[i]));
    const auto run = [](const Loss& loss, const at::Tensor& values, const at::Tensor& target) {
      const at::Tensor prediction = values.detach().clone().requires_grad_();
      const at::Tensor losses = loss.per_sample(prediction, target);
      losses.sum().backward();
      return std::pair(losses.detach(), prediction.grad());
    };
    const auto wanted = run(*cut[i], p.narrow(-1, 0, 3), t.narrow(-1, 0, 3));
    const auto got = run(*masked, p, half_missing(t));
    EXPECT_TRUE(tests::close(got.first, wanted.first, at::kDouble, 64)) << i;
    EXPECT_TRUE(tests::close(got.second.narrow(-1, 0, 3), wanted.second, at::kDouble, 64)) << i;
    EXPECT_EQ(got.second.narrow(-1, 3, 3).abs().max().item<double>(), 0) << i;
  }
}

TEST(WeightedLoss, WithoutHolesIsTheLossItself) {
  const at::Tensor p = tests::test_values({3, 2, 4, 6}, 1).mul(0.1), t = tests::test_values({3, 2, 4, 6}, 2).mul(0.1);
  std::vector<LossPtr> plain = all_losses(), same = all_losses();
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_TRUE(tests::close(with_holes(std::move(same[i]))->per_sample(p, t), plain[i]->per_sample(p, t), at::kDouble, 64)) << i;
  }
}

// Parts of a sample with very different numbers of points, as ranks have them: sums and weights are added, not means of means.
TEST(WeightedLoss, PartsAddUp) {
  const at::Tensor p = tests::test_values({2, 2, 4, 6}, 3).mul(0.1),
                   t = half_missing(tests::test_values({2, 2, 4, 6}, 4).mul(0.1));
  t.select(1, 0).narrow(-2, 0, 3).fill_(kHole);
  for (LossPtr& loss : all_losses()) {
    const LossPtr masked = with_holes(std::move(loss));
    const auto part = [&](int64_t first, int64_t rows) {
      return masked->partial(p.narrow(2, first, rows), t.narrow(2, first, rows));
    };
    EXPECT_TRUE(tests::close(masked->finish(part(0, 1) + part(1, 3)), masked->per_sample(p, t), at::kDouble, 64));
  }
}

TEST(WeightedLoss, OfASampleWithoutPointsIsZeroAndHasNoGradient) {
  at::Tensor target = tests::test_values({2, 2, 4, 6}, 4).mul(0.1);
  target.select(0, 1).fill_(kHole);
  for (LossPtr& loss : all_losses()) {
    const at::Tensor prediction = tests::test_values({2, 2, 4, 6}, 3).mul(0.1).requires_grad_();
    const at::Tensor losses = with_holes(std::move(loss))->per_sample(prediction, target);
    losses.sum().backward();
    EXPECT_GT(losses[0].item<double>(), 0);
    EXPECT_EQ(losses[1].item<double>(), 0);
    EXPECT_TRUE(at::isfinite(prediction.grad()).all().item<bool>());
    EXPECT_EQ(prediction.grad()[1].abs().max().item<double>(), 0);
  }
}

// A prediction that is not finite shows wherever there is a value.
TEST(WeightedLoss, HidesNoPredictionThatIsNotFinite) {
  const at::Tensor target = half_missing(tests::test_values({1, 2, 4, 6}, 4)), prediction = tests::test_values({1, 2, 4, 6}, 3);
  prediction[0][0][0][5] = kHole;
  EXPECT_TRUE(at::isfinite(with_holes(mean_square())->per_sample(prediction, target)).all().item<bool>());
  prediction[0][0][0][1] = kHole;
  EXPECT_FALSE(at::isfinite(with_holes(mean_square())->per_sample(prediction, target)).all().item<bool>());
}

TEST(WeightedLoss, OfChannelsAndRowsIsTheWeightedMean) {
  const at::Tensor p = tests::test_values({2, 2, 3, 4}, 5), t = tests::test_values({2, 2, 3, 4}, 6);
  const at::Tensor channels = at::tensor(std::vector<double>{1, 3}), rows = at::tensor(std::vector<double>{0.5, 1, 2});
  const at::Tensor weight = channels.view({2, 1, 1}) * rows.view({1, 3, 1});
  const at::Tensor wanted = (weight * (p - t).square()).sum({1, 2, 3}) / (weight.sum() * 4);
  const LossPtr loss = weighted_loss(mean_square(), {.channels = channels, .rows = rows}, "mse");
  EXPECT_TRUE(tests::close(loss->per_sample(p, t), wanted, at::kDouble, 64));
  const at::Tensor parts =
      loss->partial(p.narrow(2, 0, 1), t.narrow(2, 0, 1)) + loss->partial_from(1, p.narrow(2, 1, 2), t.narrow(2, 1, 2));
  EXPECT_TRUE(tests::close(loss->finish(parts), wanted, at::kDouble, 64)) << "rows keep their weight in a part";
}

class NoWeights : public Loss {
  at::Tensor partial(const at::Tensor& prediction, const at::Tensor& target) const override { return prediction - target; }
  at::Tensor finish(const at::Tensor& sums) const override { return sums; }
};

TEST(WeightedLoss, IsRefusedWhereTheLossTakesNone) {
  EXPECT_THAT(
      [] { weighted_loss(std::make_unique<NoWeights>(), {.holes = true}, "huber"); },
      ThrowsMessage<ConfigError>(HasSubstr("this loss takes no weights: loss=huber, wanted=none for points without a value")));
  EXPECT_NO_THROW(weighted_loss(std::make_unique<NoWeights>(), {}, "huber"));
}

TEST(ChannelWeights, AsMakaniAndGraphCastWriteThem) {
  const std::vector<std::string> channels{"t2m", "u10", "t500", "t1000", "z50", "lai"};
  config::LossConfig config;
  EXPECT_THAT(channel_weights(config, channels), IsEmpty());
  config.level_weighting = config::LevelWeighting::Makani;
  EXPECT_THAT(channel_weights(config, channels), ElementsAre(1, 0.1, 0.5, 1, 0.05, 0.01));
  config.level_weighting = config::LevelWeighting::GraphCast;
  EXPECT_THAT(channel_weights(config, channels), ElementsAre(1, 0.1, 500.0 / 1500, 1000.0 / 1500, 1, 1));
  config.channel_weights = {"t*=2", "t500=0.25"};
  EXPECT_THAT(channel_weights(config, channels), ElementsAre(2, 0.1, 0.25, 2, 1, 1)) << "the last that fits";
}

TEST(ChannelWeights, KnowTheNamesOfEra5AndWeatherBench) {
  const std::vector<std::string> channels{"2m_temperature", "total_precipitation_6hr", "swvl1", "stl4", "u100", "z500", "z1000"};
  config::LossConfig config;
  config.level_weighting = config::LevelWeighting::GraphCast;
  EXPECT_THAT(channel_weights(config, channels), ElementsAre(1, 0.1, 1, 1, 0.1, 500.0 / 1500, 1000.0 / 1500));
  config.level_weighting = config::LevelWeighting::Makani;
  EXPECT_THAT(channel_weights(config, channels), ElementsAre(1, 0.1, 0.01, 0.01, 0.1, 0.5, 1));
  EXPECT_THAT(channel_weights(config, {"u100", "u850"}), ElementsAre(0.1, 0.85)) << "100 hPa, which weighs as much";
  config.level_weighting = config::LevelWeighting::GraphCast;
  EXPECT_THAT(channel_weights(config, {"u100", "u850"}), ElementsAre(100.0 / 950, 850.0 / 950));
}

TEST(ChannelWeights, WhatCannotBeRead) {
  const std::vector<std::string> channels{"t2m", "z500"};
  const auto refusal = [&](const std::string& entry) {
    config::LossConfig config;
    config.channel_weights = {entry};
    try {
      channel_weights(config, channels);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal("msl=1"), HasSubstr("no channel of this name: key=channel_weights, channel=msl. There are: t2m, z500."));
  EXPECT_THAT(refusal("t2m=much"), HasSubstr("no number: key=channel_weights, channel=t2m, value=much"));
  EXPECT_THAT(refusal("t2m=-1"), HasSubstr("a negative weight: key=channel_weights, channel=t2m, weight=-1"));
  EXPECT_THAT(refusal("*=0"), HasSubstr("no channel weighs anything"));
  EXPECT_THAT(refusal("t2m"), HasSubstr("not channel=value: key=channel_weights, entry=t2m"));
}

TEST(ChannelWeights, LevelsOfNames) {
  EXPECT_EQ(leveled_name("t500")->variable, "t");
  EXPECT_EQ(leveled_name("temperature_850")->variable, "temperature");
  EXPECT_EQ(leveled_name("temperature_850")->level, 850);
  for (const char* name : {"t2m", "u10", "msl", "500", "x", "year_2000000"}) EXPECT_FALSE(leveled_name(name)) << name;
}

}  // namespace
}  // namespace welkin::train
