// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate/rollout.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "data/formats/hdf5/hdf5_file.h"
#include "number_close.h"
#include "tiny_run.h"
#include "tolerance.h"
#include "train/evaluate/forecast_files.h"
#include "train/evaluate/scores_report.h"

namespace welkin::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kTimes = 12, kPlane = 64;

// Waves that travel: two channels of `history` steps and one computed channel, the cosine of the target's time.
class TravellingWaves : public data::Dataset {
 public:
  // `predicts_all`: else the second channel of the target is another quantity than that of the input.
  explicit TravellingWaves(int64_t history, bool predicts_all = true) : history_(history) {
    spec_.geometry = data::Geometry::Sphere;
    spec_.input.shape = {2 * history + 1, 8, 8};
    spec_.target = {{"u", "v"}, {"m s-1", "m s-1"}, {2, 8, 8}};
    spec_.input.channels.resize(static_cast<size_t>(2 * history + 1), "x");
    spec_.input.units.resize(spec_.input.channels.size());
    spec_.newest_input_channel = 2 * (history - 1);
    if (!predicts_all) spec_.earlier_target = {spec_.newest_input_channel, -1}, spec_.known_input = {2 * history};
  }
  int64_t size() const override { return kTimes - history_; }
  const data::SampleSpec& spec() const override { return spec_; }
  data::SamplePlan plan(data::SampleKey key, const data::Region& wanted) const override {
    data::SamplePlan plan;
    plan.index = key.index;
    plan.region = wanted;
    return plan;
  }
  void read(const data::SamplePlan& plan, data::SampleView out) const override {
    for (int64_t age = 0; age < history_; ++age) fill(plan.index + age, out.input.subspan(static_cast<size_t>(2 * age * kPlane)));
    fill(plan.index + history_, out.target);
    for (size_t i = 0; i < kPlane; ++i) {
      out.input[static_cast<size_t>(2 * history_ * kPlane) + i] = std::cos(static_cast<float>(plan.index + history_));
    }
  }
  std::optional<int64_t> following(int64_t index) const override {
    return index + 1 < size() ? std::optional(index + 1) : std::nullopt;
  }

 private:
  static void fill(int64_t time, std::span<float> state) {
    for (size_t i = 0; i < 2 * kPlane; ++i) state[i] = std::sin(0.3f * static_cast<float>(i) + 0.7f * static_cast<float>(time));
  }
  int64_t history_;
  data::SampleSpec spec_;
};

// A model of three steps of training on the waves.
class RolloutTest : public ::testing::Test {
 protected:
  RolloutTest() {
    add_builtins(registries_);
    registries_.datasets.add("waves", {.open = [](const config::RunConfig& config, data::Split) {
                               return std::make_unique<TravellingWaves>(config.data.history, config.data.roles.empty());
                             }});
    config_ = tiny_config(folder_.path());
    config_.data.dataset = "waves";
    config_.data.history = 2;
    config_.loop.num_iters = 3;
  }
  TrainedModel trained() {
    return {registries_, config_, {.run_folder = run_with(config_, registries_).run.folder, .checkpoint = "newest"}};
  }

  std::string refusal(const TrainedModel& model, int64_t steps) {
    try {
      const Rollout rollout(model, steps);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "not refused";
  }

  ScratchFolder folder_;
  Registries registries_;
  config::RunConfig config_;
};

at::Tensor forcing_at(int64_t time) { return at::full({1, 1, 8, 8}, std::cos(static_cast<float>(time)), at::kFloat); }

TEST_F(RolloutTest, StepKIsTheModelAppliedKTimes) {
  const TrainedModel model = trained();
  const Rollout rollout(model, 4);
  std::vector<at::Tensor> got;
  rollout.run({3}, [&](const RolloutStep& step) { got.push_back(step.prediction); });
  ASSERT_EQ(got.size(), 4u);
  data::Pipeline samples = model.pipeline(1);
  samples.resume({.epoch = 0, .step = 3});
  data::Batch batch = samples.next();
  at::Tensor before = batch.input.narrow(1, 0, 2).clone(), newest = batch.input.narrow(1, 2, 2).clone();
  for (int64_t k = 0; k < 4; ++k) {
    batch.input = at::cat({before, newest, forcing_at(5 + k)}, 1);  // sample 3 predicts time 5
    const at::Tensor prediction = model.predict(batch);
    EXPECT_TRUE(at::equal(got[static_cast<size_t>(k)], prediction)) << k;
    before = newest;
    newest = prediction;
  }
  EXPECT_FALSE(tests::close(got[0], got[3], at::kFloat, 1 << 16));
}

TEST_F(RolloutTest, SamplesTogetherAreTheSamplesAloneAndKeepTheirTruth) {
  const TrainedModel model = trained();
  const Rollout rollout(model, 3);
  EXPECT_THAT(rollout.starts(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  std::vector<RolloutStep> together, alone;
  rollout.run({1, 6}, [&](const RolloutStep& step) { together.push_back(step); });
  rollout.run({6}, [&](const RolloutStep& step) { alone.push_back(step); });
  for (size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(together[k].lead, static_cast<int64_t>(k) + 1);
    EXPECT_TRUE(tests::close(together[k].prediction.narrow(0, 1, 1), alone[k].prediction, at::kFloat, 64));
    EXPECT_TRUE(at::equal(together[k].target.narrow(0, 1, 1), alone[k].target));
    EXPECT_TRUE(
        tests::rounds_to(alone[k].target[0][0][0][0].item<float>(), std::sin(0.7f * static_cast<float>(8 + k)), 1, kFp32, 8));
  }
}

TEST_F(RolloutTest, ScoresOfLeadOneAreThoseOfTheModel) {
  const TrainedModel model = trained();
  const Scores plain = model.score({}, [](int64_t) {});
  const auto one = score_rollout(model, Rollout(model, 1), {}, [](int64_t) {});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].samples, plain.samples);
  for (size_t f = 0; f < 2; ++f) EXPECT_TRUE(tests::close(one[0].forecasts[f].rmse(), plain.forecasts[f].rmse(), kFp32, 64));
  const auto leads = score_rollout(model, Rollout(model, 3), {}, [](int64_t) {});
  EXPECT_EQ(leads[2].samples, 8);
  EXPECT_LT(leads[0].forecasts[1].rmse(), leads[2].forecasts[1].rmse());  // persistence is of the start: it gets worse
  const auto parsed = nlohmann::json::parse(rollout_json(leads));
  EXPECT_EQ(parsed["starts"], 8);
  EXPECT_EQ(parsed["leads"][2]["lead"], 3);
  EXPECT_TRUE(tests::close(parsed["leads"][2]["channels"]["u"]["model"]["rmse"].get<double>(),
                           leads[2].forecasts[0].channels[0].rmse, kFp64, 2));
  const std::string table = rollout_table(leads);
  for (const char* part : {"RMSE model", "RMSE persistence", "ACC model", "all", "v [m s-1]"})
    EXPECT_THAT(table, HasSubstr(part));
}

TEST_F(RolloutTest, FilesHaveALeadAxis) {
  const TrainedModel model = trained();
  const auto written =
      write_forecasts(model, {.folder = folder_ / "forecasts", .num_samples = 2, .rollout_steps = 3, .channels = {"v"}});
  ASSERT_EQ(written.size(), 3u);
  EXPECT_EQ(written[1].filename(), "sample_0_v_lead3.png");
  EXPECT_EQ(written[2].filename(), "sample_7_v_lead3.png");
  const auto file = data::Hdf5File::open(written[0]);
  EXPECT_EQ(file.dataset("prediction").shape, (data::Extents{2, 3, 2, 8, 8}));
  EXPECT_EQ(file.dataset("target").shape, (data::Extents{2, 3, 2, 8, 8}));
  EXPECT_EQ(file.dataset("input").shape, (data::Extents{2, 5, 8, 8}));
  std::vector<float> stored(2 * kPlane);
  file.read("prediction", {1, 2, 0, 0, 0}, {1, 1, 2, 8, 8}, std::span<float>(stored));
  Rollout(model, 3).run({7}, [&](const RolloutStep& step) {
    if (step.lead < 3) return;
    EXPECT_EQ(stored[70], step.prediction[0][1][0][6].item<float>());
  });
}

TEST_F(RolloutTest, RefusesWhatCannotBeFedBack) {
  const TrainedModel model = trained();
  EXPECT_EQ(refusal(model, 11),
            "[rollout] no sample has so many steps of truth after it: rollout_steps=11, longest=10. Ask for fewer steps, or give "
            "longer files.");
  config_.data.dt = 2;
  config_.loop.resume = true;
  EXPECT_THAT(refusal(trained(), 2), HasSubstr("[rollout] a rollout needs every input step to be predicted: history=2, dt=2"));
  config_.data.dt = 1;
  config_.data.roles = {"of the test"};
  EXPECT_THAT(refusal(trained(), 2),
              HasSubstr("the prediction is not the next input, some of its channels are not predicted: channels="));
}

}  // namespace
}  // namespace welkin::train
