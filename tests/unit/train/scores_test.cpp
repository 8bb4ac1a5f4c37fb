// SPDX-License-Identifier: Apache-2.0
#include "train/scores.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "data/npy_file.h"
#include "train/scores_report.h"
#include "train/time_mean.h"

namespace welkin::train {
namespace {

data::SampleSpec two_channel_field() {
  data::SampleSpec spec;
  spec.input = {{"a", "b", "solar"}, {"K", "m s-1", ""}, {3, 4, 6}};
  spec.target = {{"a", "b"}, {"K", "m s-1"}, {2, 4, 6}};
  spec.latitude = {40, 30, 20, 10};
  spec.target_mean = {280, 0};
  spec.target_std = {10, 5};
  return spec;
}

TEST(Scores, OfConstantErrorsAreThoseErrors) {
  const auto spec = two_channel_field();
  ScoreSums sums(spec, at::zeros({2, 4, 6}));
  const at::Tensor input = at::full({3, 3, 4, 6}, 1.5);
  const at::Tensor target = at::ones({3, 2, 4, 6});
  sums.add(input, target, target + 0.25, at::full({3}, 0.25));
  const Scores scores = sums.finish();
  ASSERT_EQ(scores.forecasts.size(), 3u);
  EXPECT_EQ(scores.samples, 3);
  EXPECT_DOUBLE_EQ(scores.loss, 0.25);
  EXPECT_NEAR(scores.forecasts[0].channels[0].rmse, 0.25, 1e-12);
  EXPECT_NEAR(scores.forecasts[0].channels[0].rmse_physical, 2.5, 1e-11);
  EXPECT_NEAR(scores.forecasts[0].channels[1].rmse_physical, 1.25, 1e-11);
  EXPECT_NEAR(scores.forecasts[1].channels[1].rmse, 0.5, 1e-12);  // persistence
  EXPECT_NEAR(scores.forecasts[2].rmse(), 1.0, 1e-12);            // time mean
  EXPECT_NEAR(scores.forecasts[0].channels[0].acc, 1.0, 1e-12);
}

TEST(Scores, PoolTheErrorsOfSamplesBeforeTheRoot) {
  const auto spec = two_channel_field();
  ScoreSums sums(spec, {});
  for (const double error : {1.0, 3.0}) {
    const at::Tensor target = at::zeros({1, 2, 4, 6});
    sums.add(at::zeros({1, 3, 4, 6}), target, target + error, at::full({1}, error));
  }
  const ChannelScore score = sums.finish().forecasts[0].channels[0];
  EXPECT_NEAR(score.rmse, std::sqrt(5.0), 1e-12);
  EXPECT_NEAR(score.mean_rmse, 2.0, 1e-12);
}

TEST(Scores, OfBoxesHaveNoPersistenceAndNoLatitude) {
  data::SampleSpec spec;
  spec.geometry = data::Geometry::PeriodicBox;
  spec.input = {{"x", "y", "z"}, {"", "", ""}, {3, 4, 4, 4}};
  spec.target = {{"rho"}, {""}, {1, 4, 4, 4}};
  ScoreSums sums(spec, {});
  const at::Tensor target = at::ones({1, 1, 4, 4, 4});
  at::Tensor prediction = target.clone();
  prediction[0][0][0][0][0] = 9.0;  // one of 64 cells is wrong by 8
  sums.add(at::zeros({1, 3, 4, 4, 4}), target, prediction, at::zeros({1}));
  const Scores scores = sums.finish();
  ASSERT_EQ(scores.forecasts.size(), 1u);
  EXPECT_NEAR(scores.forecasts[0].channels[0].rmse, 1.0, 1e-12);
}

TEST(Scores, PrintAsTableAndAsJson) {
  const auto spec = two_channel_field();
  ScoreSums sums(spec, {});
  sums.add(at::zeros({1, 3, 4, 6}), at::ones({1, 2, 4, 6}), at::ones({1, 2, 4, 6}), at::zeros({1}));
  const Scores scores = sums.finish();
  EXPECT_NE(scores_table(scores).find("a [K]      persistence  1.0000                10       -"), std::string::npos)
      << scores_table(scores);
  const auto root = nlohmann::json::parse(scores_json(scores));
  EXPECT_EQ(root["samples"], 1);
  EXPECT_NEAR(root["channels"]["b"]["persistence"]["rmse_physical"].get<double>(), 5.0, 1e-12);
}

class TimeMean : public testing::Test {
 protected:
  std::string path_ = testing::TempDir() + "welkin_time_means.npy";
};

TEST_F(TimeMean, IsNormalisedAndCroppedLikeTheTarget) {
  std::vector<float> values(2 * 5 * 6, 290.0f);  // one row more than the sample
  data::write_npy(path_, {1, 2, 5, 6}, values);
  const at::Tensor map = read_time_mean(path_, two_channel_field());
  ASSERT_EQ(map.sizes().vec(), (std::vector<int64_t>{2, 4, 6}));
  EXPECT_FLOAT_EQ(map[0][0][0].item<float>(), 1.0f);
  EXPECT_FLOAT_EQ(map[1][3][5].item<float>(), 58.0f);
}

TEST_F(TimeMean, IsUndefinedWithoutAFile) {
  EXPECT_FALSE(read_time_mean("/nowhere/time_means.npy", two_channel_field()).defined());
}

TEST_F(TimeMean, ThatDoesNotFitSaysHow) {
  data::write_npy(path_, {1, 1, 4, 6}, std::vector<float>(24));
  try {
    read_time_mean(path_, two_channel_field());
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("shape=(1, 1, 4, 6), wanted=(1, 2, 4, 6)"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace welkin::train
