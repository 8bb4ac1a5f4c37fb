// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate/scores.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/error.h"
#include "core/file.h"
#include "data/formats/npy_file.h"
#include "gradient_check.h"
#include "train/evaluate/channel_units.h"
#include "train/evaluate/persistence.h"
#include "train/evaluate/scores_report.h"
#include "train/evaluate/time_mean.h"
#include "train/learn/metrics.h"
#include "train/step/model_setup.h"

namespace welkin::train {
namespace {

data::SampleSpec two_channel_field() {
  data::SampleSpec spec;
  spec.input = {{"a", "b", "solar"}, {"K", "m s-1", ""}, {3, 4, 6}};
  spec.target = {{"a", "b"}, {"K", "m s-1"}, {2, 4, 6}};
  spec.latitude = {40, 30, 20, 10};
  spec.input_mean = {280, 0, 0}, spec.input_std = {10, 5, 1};
  spec.target_mean = {280, 0}, spec.target_std = {10, 5};
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
  EXPECT_TRUE(tests::close(scores.forecasts[0].channels[0].rmse, 0.25, kFp64, 64));
  EXPECT_TRUE(tests::close(scores.forecasts[0].channels[0].rmse_physical, 2.5, kFp64, 64));
  EXPECT_TRUE(tests::close(scores.forecasts[0].channels[1].rmse_physical, 1.25, kFp64, 64));
  EXPECT_TRUE(tests::close(scores.forecasts[1].channels[1].rmse, 0.5, kFp64, 64));  // persistence
  EXPECT_TRUE(tests::close(scores.forecasts[2].rmse(), 1.0, kFp64, 64));            // time mean
  EXPECT_TRUE(tests::close(scores.forecasts[0].channels[0].acc, 1.0, kFp64, 64));
}

// Points without a value against the same field without its last two columns; a sample without any counts nowhere.
TEST(Scores, OfPointsWithAValueAreThoseOfTheFieldCutOutByHand) {
  auto spec = two_channel_field(), cut_spec = spec;
  cut_spec.input.shape = {3, 4, 4}, cut_spec.target.shape = {2, 4, 4};
  const at::Tensor input = tests::test_values({3, 3, 4, 6}, 1), prediction = tests::test_values({3, 2, 4, 6}, 2);
  const at::Tensor target = tests::test_values({3, 2, 4, 6}, 3), mean = tests::test_values({2, 4, 6}, 4).to(at::kFloat);
  const at::Tensor holed = target.clone();
  holed.narrow(3, 4, 2).fill_(std::nan(""));
  ScoreSums sums(spec, mean, /*holes=*/true), cut(cut_spec, mean.narrow(2, 0, 4).contiguous());
  sums.add(input, holed, prediction, at::full({3}, 0.5));
  sums.add(input.narrow(0, 0, 1), at::full({1, 2, 4, 6}, std::nan("")), prediction.narrow(0, 0, 1), at::zeros({1}));
  const auto part = [](const at::Tensor& values) { return values.narrow(3, 0, 4).contiguous(); };
  cut.add(part(input), part(target), part(prediction), at::full({3}, 0.5));
  const Scores got = sums.finish(), wanted = cut.finish();
  EXPECT_EQ(got.points, (std::vector<int64_t>{48, 48}));
  EXPECT_EQ(got.all_points, 96);
  EXPECT_EQ(got.scored, 3);
  EXPECT_DOUBLE_EQ(got.loss, wanted.loss);
  EXPECT_NE(scores_table(got).find("over 3 samples that have points, of 4"), std::string::npos) << scores_table(got);
  for (size_t f = 0; f < 3; ++f) {
    for (size_t c = 0; c < 2; ++c) {
      const ChannelScore &a = got.forecasts[f].channels[c], &b = wanted.forecasts[f].channels[c];
      EXPECT_TRUE(tests::close(a.rmse, b.rmse, kFp64, 64));
      EXPECT_TRUE(tests::close(a.mean_rmse, b.mean_rmse, kFp64, 64));
      EXPECT_TRUE(tests::close(a.mae_physical, b.mae_physical, kFp64, 64));
      EXPECT_TRUE(tests::close(a.bias_physical, b.bias_physical, kFp64, 4096));
      if (f < 2) {
        EXPECT_TRUE(tests::close(a.acc, b.acc, kFp64, 4096));
      }
      EXPECT_TRUE(a.spectrum.empty());
    }
  }
  EXPECT_NE(scores_table(got).find("48 of 96"), std::string::npos) << scores_table(got);
  EXPECT_EQ(scores_table(wanted).find(" of "), std::string::npos) << scores_table(wanted);
}

TEST(Scores, WithoutAnyPointAreRefused) {
  const auto spec = two_channel_field();
  ScoreSums sums(spec, {}, /*holes=*/true);
  sums.add(at::zeros({1, 3, 4, 6}), at::full({1, 2, 4, 6}, std::nan("")), at::zeros({1, 2, 4, 6}), at::zeros({1}));
  const Scores none = sums.finish();
  EXPECT_TRUE(std::isnan(none.loss));
  EXPECT_THROW(check_has_points({none, none}), DataError);
  ScoreSums with_points(spec, {}, /*holes=*/true);
  with_points.add(at::zeros({1, 3, 4, 6}), at::zeros({1, 2, 4, 6}), at::zeros({1, 2, 4, 6}), at::zeros({1}));
  EXPECT_NO_THROW(check_has_points({none, with_points.finish()}));
}

// A diagnostic channel has no earlier state.
TEST(Scores, PersistenceOfAChannelThatIsNoInputIsNotDefined) {
  auto spec = two_channel_field();
  spec.input_mean = {0, 280, 0}, spec.input_std = {5, 10, 1};  // a is the second input
  spec.earlier_target = {1, -1};
  ScoreSums sums(spec, {});
  sums.add(at::ones({1, 3, 4, 6}), at::ones({1, 2, 4, 6}), at::ones({1, 2, 4, 6}), at::zeros({1}));
  const Scores scores = sums.finish();
  ASSERT_EQ(scores.forecasts.size(), 2u);
  EXPECT_EQ(scores.forecasts[1].channels[0].rmse, 0);
  EXPECT_TRUE(std::isnan(scores.forecasts[1].channels[1].rmse));
}

// A file that holds log10(density), less its mean and over its deviation; and a channel of which the run takes the logarithm.
data::SampleSpec scaled_box() {
  data::SampleSpec spec;
  spec.input = {{"dm"}, {"1"}, {1, 4, 4, 4}, {{"identity", 3, 2}}};
  spec.target = {{"gas", "rain", "flux"},
                 {"log10(g cm-3)", "mm", "W"},
                 {3, 4, 4, 4},
                 {{"log10", -30, 0.5}, {"identity", 0, 1}, {"identity", 100, -20}}};
  spec.target_log = {1};
  return spec;
}

TEST(Scores, InTheUnitBeforeTheFileWasScaled) {
  const auto spec = scaled_box();
  ScoreSums sums(spec, {});
  const at::Tensor target = tests::test_values({2, 3, 4, 4, 4}, 1);
  sums.add(at::zeros({2, 1, 4, 4, 4}), target, target + 0.25, at::zeros({2}));
  const Scores scores = sums.finish();
  EXPECT_EQ(scores.units, (std::vector<std::string>{"log10(g cm-3)", "ln(1 + value in the file)", "W"}));
  const auto& channels = scores.forecasts[0].channels;
  for (const auto& [channel, expected] : {std::pair{0, 0.125}, {1, 0.25}, {2, 5.0}}) {
    const auto& score = channels[static_cast<size_t>(channel)];
    EXPECT_TRUE(tests::close(score.rmse, 0.25, kFp32, 64));
    EXPECT_TRUE(tests::close(score.rmse_physical, expected, kFp32, 64));
    EXPECT_TRUE(tests::close(score.mae_physical, expected, kFp32, 64));
    EXPECT_TRUE(tests::close(score.bias_physical, channel == 2 ? -expected : expected, kFp32, 64));
  }
}

TEST(ChannelUnits, UndoNormalisationAndTheFilesScaling) {
  auto spec = scaled_box();
  const ChannelUnits input = input_units(spec);
  EXPECT_EQ(input.scale, std::vector<double>{2});
  EXPECT_EQ(input.offset, std::vector<double>{3});
  spec.target_mean = {1, 2, 3}, spec.target_std = {4, 5, 6};
  const ChannelUnits target = target_units(spec);
  EXPECT_EQ(target.scale, (std::vector<double>{2, 5, -120}));
  EXPECT_EQ(target.offset, (std::vector<double>{-29.5, 2, 40}));
  const ChannelUnits field = target_units(two_channel_field());
  EXPECT_EQ(field.units, two_channel_field().target.units);
  EXPECT_EQ(field.scale, two_channel_field().target_std);
  spec.target.scaling.clear();
  EXPECT_EQ(target_units(spec).units, (std::vector<std::string>{"log10(g cm-3)", "ln(1 + mm)", "W"}));
}

TEST(Scores, InUnitsAndByScale) {
  const auto spec = two_channel_field();
  ScoreSums sums(spec, {});
  const at::Tensor target = tests::test_values({2, 2, 4, 6}, 1);
  const at::Tensor smooth = target.mean({3}, true).expand_as(target);  // nothing but the means of the rows
  sums.add(at::zeros({2, 3, 4, 6}), target, smooth, at::zeros({2}));
  const Scores scores = sums.finish();
  const ChannelScore& score = scores.forecasts[0].channels[1];
  const at::Tensor weights = latitude_weights(4, spec.latitude).view({4, 1});
  const at::Tensor error = (smooth - target).select(1, 1).mul(weights);
  EXPECT_TRUE(tests::close(score.mae_physical, 5 * error.abs().mean().item<double>(), kFp64, 64));
  EXPECT_LE(std::abs(score.bias_physical), worst_sum_bound(kFp64, 64));  // errors of a row cancel
  EXPECT_EQ(scores.wavenumber, "zonal");
  ASSERT_EQ(score.spectrum.size(), 4u);
  EXPECT_LE(score.small_scales, worst_sum_bound(kFp64, 64));
  const auto& spectrum = scores.target_spectra[1];
  EXPECT_TRUE(tests::close(std::accumulate(spectrum.begin(), spectrum.end(), 0.0),
                           target.select(1, 1).square().mul(weights).mean().item<double>(), kFp64, 64));
}

TEST(Scores, PoolTheErrorsOfSamplesBeforeTheRoot) {
  const auto spec = two_channel_field();
  ScoreSums sums(spec, {});
  for (const double error : {1.0, 3.0}) {
    const at::Tensor target = at::zeros({1, 2, 4, 6});
    sums.add(at::zeros({1, 3, 4, 6}), target, target + error, at::full({1}, error));
  }
  const ChannelScore score = sums.finish().forecasts[0].channels[0];
  EXPECT_TRUE(tests::close(score.rmse, std::sqrt(5.0), kFp64, 64));
  EXPECT_TRUE(tests::close(score.mean_rmse, 2.0, kFp64, 64));
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
  EXPECT_TRUE(tests::close(scores.forecasts[0].channels[0].rmse, 1.0, kFp64, 64));
}

TEST(Scores, PrintAsTableAndAsJson) {
  const auto spec = two_channel_field();
  ScoreSums sums(spec, {});
  sums.add(at::zeros({1, 3, 4, 6}), at::ones({1, 2, 4, 6}), at::ones({1, 2, 4, 6}), at::zeros({1}));
  const Scores scores = sums.finish();
  EXPECT_NE(scores_table(scores).find("a [K]      persistence  1.0000                10   10   -10    -             -"),
            std::string::npos)
      << scores_table(scores);
  const auto root = nlohmann::json::parse(scores_json(scores));
  EXPECT_EQ(root["samples"], 1);
  EXPECT_TRUE(root["channels"]["a"]["model"]["acc"].is_null()) << "without a time mean there are no anomalies";
  EXPECT_TRUE(tests::close(root["channels"]["b"]["persistence"]["rmse_physical"].get<double>(), 5.0, kFp64, 64));
}

// The first channel is better than persistence, the second is worse.
Scores half_lost() {
  const auto spec = two_channel_field();
  ScoreSums sums(spec, at::zeros({2, 4, 6}));
  const at::Tensor target = at::ones({1, 2, 4, 6});
  at::Tensor prediction = target + 0.5, input = at::zeros({1, 3, 4, 6});
  input.select(1, 1).fill_(0.75);
  sums.add(input, target, prediction, at::zeros({1}));
  return sums.finish();
}

TEST(Scores, MarkWhatLosesToPersistence) {
  const Scores scores = half_lost();
  const std::string table = scores_table(scores);
  EXPECT_NE(table.find("b [m s-1]  model *      0.5000"), std::string::npos) << table;
  EXPECT_NE(table.find("a [K]      model        0.5000"), std::string::npos) << table;
  EXPECT_NE(table.find("* worse than persistence: 1 of 2 channels\n"), std::string::npos) << table;
  EXPECT_EQ(nlohmann::json::parse(scores_json(scores))["worse_than_persistence"], nlohmann::json::array({"b"}));
  const std::string leads = rollout_table({scores});
  EXPECT_NE(leads.find("*0.5000"), std::string::npos) << leads;
  EXPECT_NE(leads.find("* worse than persistence\n"), std::string::npos) << leads;
}

TEST(Scores, ThatAreNotDefinedAreADashAndNull) {
  const Scores scores = half_lost();  // of constant fields: without power at small scales
  const auto root = nlohmann::json::parse(scores_json(scores));
  EXPECT_TRUE(root["channels"]["a"]["time mean"]["acc"].is_null());
  EXPECT_TRUE(root["channels"]["a"]["model"]["small_scales"].is_null());
  EXPECT_NE(scores_table(scores).find("a [K]      time mean    1.0000                10    10    -10       -             -"),
            std::string::npos)
      << scores_table(scores);
}

// Roundings of values about 280 are no weather.
TEST(Scores, TheRoundingOfTheTargetIsNoPower) {
  const auto spec = two_channel_field();
  ScoreSums sums(spec, {});
  const at::Tensor smooth = at::full({4, 2, 4, 6}, 28.0f) + tests::test_values({4, 2, 4, 1}, 1).to(at::kFloat);
  const at::Tensor rounded = smooth + tests::test_values({4, 2, 4, 6}, 2).to(at::kFloat) * 2e-6f;
  sums.add(at::zeros({4, 3, 4, 6}), rounded - 28, smooth - 28 + tests::test_values({4, 2, 4, 6}, 3).to(at::kFloat),
           at::zeros({4}));
  EXPECT_TRUE(std::isnan(sums.finish().forecasts[0].channels[0].small_scales));
}

TEST(Scores, PersistenceFollowsTheNamesOfTheChannels) {
  auto spec = two_channel_field();
  spec.input_mean = {0, 280, 0}, spec.input_std = {5, 10, 1};
  spec.earlier_target = {1, 0};
  ASSERT_TRUE(has_persistence(spec));
  ScoreSums sums(spec, {});
  at::Tensor input = at::zeros({1, 3, 4, 6});
  input.select(1, 0).fill_(2.0);
  const at::Tensor target = at::zeros({1, 2, 4, 6});
  sums.add(input, target, target, at::zeros({1}));
  const ForecastScores persistence = sums.finish().forecasts.at(1);
  EXPECT_EQ(persistence.channels[0].rmse, 0.0);
  EXPECT_TRUE(tests::close(persistence.channels[1].rmse, 2.0, kFp64, 64));
  spec.earlier_target = {1, -1};
  EXPECT_TRUE(has_persistence(spec));
  spec.earlier_target = {-1, -1};
  EXPECT_FALSE(has_persistence(spec));
}

// Input and target in other numbers: a of files 290 and 295 K, b of 3 m s-1 before its logarithm and 4 after it.
TEST(Scores, PersistenceIsInTheNumbersOfTheTarget) {
  auto spec = two_channel_field();
  spec.input_mean = {270, 0, 0}, spec.input_std = {20, 1, 1};
  spec.input_log = {1}, spec.input_log_eps = {0.5};
  at::Tensor input = at::zeros({1, 3, 4, 6}), target = at::zeros({1, 2, 4, 6});
  input.select(1, 0).fill_((290.0 - 270) / 20);
  input.select(1, 1).fill_(std::log1p(3 / 0.5));
  target.select(1, 0).fill_((295.0 - 280) / 10);
  target.select(1, 1).fill_(4.0 / 5);
  const auto persistence = [&] {
    ScoreSums sums(spec, {});
    sums.add(input, target, target, at::zeros({1}));
    return sums.finish().forecasts.at(1);
  };
  EXPECT_TRUE(tests::close(persistence().channels[0].rmse_physical, 5, kFp32, 64));
  EXPECT_TRUE(tests::close(persistence().channels[1].rmse_physical, 1, kFp32, 64));
  spec.input_clip = {0, 280};
  EXPECT_TRUE(std::isnan(persistence().channels[0].rmse)) << "nobody knows what was clipped away";
  spec.target_clip = {0, 280};
  EXPECT_FALSE(std::isnan(persistence().channels[0].rmse));
}

TEST(Scores, StatesAreRefusedWhereAddingOrFeedingThemBackIsWrong) {
  auto spec = two_channel_field();
  spec.earlier_target = {0, 1};
  config::RunConfig config;
  config.model.residual = true;
  check_state_transforms(config, spec);
  spec.input_log = {1};
  EXPECT_THROW(check_state_transforms(config, spec), ConfigError);
  config.model.residual_except = {"b"};
  check_state_transforms(config, spec);
  config.loss.replay_buffer = 2;
  EXPECT_THROW(check_state_transforms(config, spec), ConfigError);
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

TEST_F(TimeMean, TakesTheLogarithmOfTheTarget) {
  data::write_npy(path_, {1, 2, 4, 6}, std::vector<float>(48, 30.0f));
  auto spec = two_channel_field();
  spec.target_log = {1}, spec.target_log_eps = {10};
  spec.target_mean = {280, 0}, spec.target_std = {10, 1};
  const at::Tensor map = read_time_mean(path_, spec);
  EXPECT_FLOAT_EQ(map[0][0][0].item<float>(), -25.0f);
  EXPECT_FLOAT_EQ(map[1][0][0].item<float>(), static_cast<float>(std::log1p(3.0)));
}

TEST_F(TimeMean, LiesWhereTheTargetLiesInTheFile) {
  std::vector<float> values;
  for (int i = 0; i < 3 * 6 * 8; ++i) values.push_back(static_cast<float>(i));
  data::write_npy(path_, {1, 3, 6, 8}, values);
  auto spec = two_channel_field();
  spec.target_mean.clear(), spec.target_std.clear();
  spec.first_cell = {1, 2};
  spec.target_of_file = {2, 0};
  const at::Tensor map = read_time_mean(path_, spec);
  EXPECT_FLOAT_EQ(map[0][0][0].item<float>(), 2 * 48 + 8 + 2);
  EXPECT_FLOAT_EQ(map[1][3][5].item<float>(), 4 * 8 + 7);
  spec.first_cell = {3, 2};
  EXPECT_THROW(read_time_mean(path_, spec), DataError);
  spec.first_cell = {1, 6}, spec.columns_around = 8;
  const at::Tensor around = read_time_mean(path_, spec);
  EXPECT_FLOAT_EQ(around[0][0][1].item<float>(), 2 * 48 + 8 + 7);
  EXPECT_FLOAT_EQ(around[0][0][2].item<float>(), 2 * 48 + 8) << "the first column follows the last";
  spec.columns_around = 16;
  EXPECT_THROW(read_time_mean(path_, spec), DataError);
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
