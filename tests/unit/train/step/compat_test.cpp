// SPDX-License-Identifier: Apache-2.0
// The tutorials' defects in schedules, lengths and validation are absent (docs/reference/defects.md), and --compat brings back
// their step counts and rates. Where an option brings a defect back, the same check is run with it and must find it.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <regex>

#include "core/error.h"
#include "data/sample/epoch_plan.h"
#include "number_close.h"
#include "tiny_run.h"
#include "tolerance.h"
#include "train/learn/lr_schedule.h"
#include "train/learn/lr_table.h"
#include "train/run/run_rules.h"
#include "train/step/model_setup.h"

namespace welkin::train {
namespace {

using ::testing::HasSubstr;

config::RunConfig shipped(const std::string& file, const std::string& preset, const std::string& compat) {
  const char* source = std::getenv("WELKIN_SOURCE_DIR");
  const std::string path = std::string(source == nullptr ? "." : source) + "/config/" + file;
  std::vector<const char*> arguments = {"train", "--yaml_config", path.c_str(), "--config", preset.c_str()};
  if (!compat.empty()) arguments.insert(arguments.end(), {"--compat", compat.c_str()});
  return config::resolve(config::parse(static_cast<int>(arguments.size()), arguments.data()), 1).config;
}

RunLength length_of(const config::RunConfig& config, int64_t samples, bool drop_last) {
  const data::EpochPlan plan({.num_samples = samples,
                              .global_batch = config.loop.global_batch_size,
                              .micro_batch = config.loop.global_batch_size,
                              .drop_last = drop_last,
                              .shard_rule = config.rules.shard_rule});
  return run_length(config, samples, plan.steps_per_epoch());
}

LrSchedulePtr schedule_of(const config::RunConfig& config, const RunLength& length) {
  Registries registries;
  add_builtins(registries);
  return registries.schedules.at(config.schedule.schedule)(config, length);
}

// A published figure with all its digits: within half a unit of the last.
void expect_published(double value, double published, double unit, const std::string& what) {
  EXPECT_TRUE(tests::within(value, published, {0.5 * unit, "half of the last published digit"})) << what;
}

struct UnetRow {
  std::string preset;
  int64_t steps, epochs;           // as the schedule counts them
  int64_t loaded;                  // steps of an epoch that the loader really gives
  double peak, peak_unit;          // and the unit of the last digit
  double at_last_step, last_unit;  // the rate at i = S
};

// spec: U-Net, section 5.3.
const std::vector<UnetRow>& unet_rows() {
  static const std::vector<UnetRow> rows = {
      {"base", 1024, 10, 1024, 2e-4, 1e-8, 0, 1e-12},
      {"bs64_opt", 1024, 10, 1024, 2e-4, 1e-8, 0, 1e-12},
      {"short", 64, 4, 64, 2e-4, 1e-8, 0, 1e-12},
      {"short_opt", 64, 4, 64, 2e-4, 1e-8, 0, 1e-12},
      {"bs256_opt", 256, 20, 256, 4e-4, 1e-8, 6.2e-7, 1e-8},
      {"bs512_test", 128, 10, 128, 5.657e-4, 1e-7, 1.38e-5, 1e-7},
      {"bs512_opt", 128, 40, 128, 5.657e-4, 1e-7, 8.7e-7, 1e-8},
      {"bs2048_opt", 32, 160, 32, 1.1314e-3, 1e-7, 1.74e-6, 1e-8},
      {"bs8192_opt", 8, 320, 8, 2.2627e-3, 1e-7, 1.39e-5, 1e-7},
      {"base_sm", 2048, 10, 2048, 2e-4, 1e-8, 0, 1e-12},
      {"shorter_sm", 16, 4, 16, 2e-4, 1e-8, 0, 1e-12},
      {"short_sm", 128, 4, 128, 2e-4, 1e-8, 0, 1e-12},
      {"short_opt_sm", 128, 4, 128, 2e-4, 1e-8, 0, 1e-12},
      {"bs32_opt_sm", 2048, 3, 2048, 2e-4, 1e-8, 0, 1e-12},
      {"bs576_test_sm", 113, 3, 114, 8.485e-4, 1e-7, 2.65e-4, 1e-6},
      {"bs576_opt_sm", 113, 12, 114, 8.485e-4, 1e-7, 1.85e-5, 1e-7},
      {"bs2304_opt_sm", 28, 48, 29, 1.6971e-3, 1e-7, 3.77e-5, 1e-7},
      {"bs9216_opt_sm", 7, 96, 8, 3.3941e-3, 1e-7, 2.95e-4, 1e-6},
  };
  return rows;
}

TEST(Compat, UnetStepsAndRatesAreThePublishedOnes) {
  for (const UnetRow& row : unet_rows()) {
    const config::RunConfig config = shipped("UNet.yaml", row.preset, "sc22");
    const RunLength length = length_of(config, config.data.Nsamples, /*drop_last=*/false);
    const int64_t consumed = config.rules.first_batch_rule == config::FirstBatchRule::Consumed ? 1 : 0;
    EXPECT_EQ(length.steps_per_epoch, row.loaded) << row.preset;
    EXPECT_EQ(length.total_steps, row.loaded * row.epochs - consumed) << row.preset;
    const LrSchedulePtr schedule = schedule_of(config, length);
    expect_published(peak_lr(config), row.peak, row.peak_unit, row.preset + " peak");
    expect_published(schedule->rate(row.steps * row.epochs - 1), row.at_last_step, row.last_unit, row.preset + " at S");
  }
}

TEST(Compat, UnetRatesOfThePublishedLog) {
  const config::RunConfig config = shipped("UNet.yaml", "base", "sc22");
  const LrSchedulePtr schedule = schedule_of(config, length_of(config, config.data.Nsamples, false));
  expect_published(schedule->rate(1024 - 1), 1.95106e-4, 1e-9, "1024");  // the value that the last step used
  expect_published(schedule->rate(2048 - 1), 1.80902e-4, 1e-9, "2048");
}

// spec: ViT, section 5; N = 37960.
TEST(Compat, VitStepsAreThePublishedOnes) {
  const std::vector<std::array<int64_t, 4>> rows = {{16, 2372, 12, 28464},  {32, 1186, 25, 29650},  {64, 593, 50, 29650},
                                                    {128, 296, 101, 29896}, {256, 148, 202, 29896}, {512, 74, 405, 29970},
                                                    {1024, 37, 810, 29970}, {2048, 18, 1666, 29988}};
  for (const auto& [batch, steps, epochs, iterations] : rows) {
    for (const char* compat : {"sc23", "dl4sci25"}) {
      const std::string file = std::string(compat) == "sc23" ? "sc23/ViT.yaml" : "ViT.yaml";
      config::RunConfig config = shipped(file, "bs" + std::to_string(batch) + "_opt", compat);
      ASSERT_EQ(config.loop.global_batch_size, batch);
      config.rules.first_batch_rule = config::FirstBatchRule::Kept;  // the table is the PyTorch loader's
      const RunLength length = length_of(config, 37960, /*drop_last=*/true);
      EXPECT_EQ(length.steps_per_epoch, steps) << compat << batch;
      EXPECT_EQ(length.total_steps, iterations) << compat << batch;
      EXPECT_EQ(length.total_steps / length.steps_per_epoch, epochs) << compat << batch;
    }
  }
  const config::RunConfig brief = shipped("ViT.yaml", "short", "dl4sci25");
  const RunLength length = length_of(brief, *brief.data.limit_nsamples, true);
  EXPECT_EQ(length.steps_per_epoch, 32);
  EXPECT_EQ(length.total_steps, 128);
}

TEST(Compat, VitRatesOfThePublishedLog) {
  const config::RunConfig config = shipped("ViT.yaml", "base", "dl4sci25");
  const LrSchedulePtr schedule = schedule_of(config, length_of(config, 37960, true));
  expect_published(schedule->rate(2372), 4.92327e-4, 1e-9, "2372");  // logged: the next step's
  expect_published(schedule->rate(23720), 5.21408e-5, 1e-10, "23720");
  expect_published(schedule->rate(28464) / 5e-4, 0.0065, 1e-4, "the run ends at 0.65 %");
}

// The rate of the last step of the run over the peak.
double final_over_peak(const std::string& preset, const std::string& compat) {
  const config::RunConfig config = shipped("UNet.yaml", preset, compat);
  const RunLength length = length_of(config, config.data.Nsamples, false);
  return schedule_of(config, length)->rate(length.total_steps - 1) / peak_lr(config);
}

TEST(TutorialDefects, D20TheEndLearningRateIsReached) {
  for (const char* preset :
       {"bs256_opt", "bs512_test", "bs512_opt", "bs2048_opt", "bs8192_opt", "bs576_test_sm", "bs9216_opt_sm"}) {
    EXPECT_TRUE(tests::close(1 + final_over_peak(preset, ""), 1, kFp64, 8)) << preset;
    EXPECT_GT(final_over_peak(preset, "sc22"), 1e-3) << preset << ": the check does not see the defect";
  }
}

TEST(TutorialDefects, D22AVitRunReachesItsStepsAndItsEnd) {
  const auto run = [](const std::string& compat) {
    const config::RunConfig config = shipped("ViT.yaml", "base", compat);
    const RunLength length = length_of(config, 37960, true);
    return std::pair(length.total_steps, schedule_of(config, length)->rate(length.total_steps));
  };
  EXPECT_EQ(run("").first, 30000);
  EXPECT_TRUE(tests::close(1 + run("").second, 1, kFp64, 8));
  EXPECT_EQ(run("dl4sci25").first, 28464);
  EXPECT_GT(run("dl4sci25").second, 3e-6) << "the check does not see the defect";
}

TEST(TutorialDefects, D22ARunShorterThanAnEpochTrains) {
  config::RunConfig config;
  config.loop.num_iters = 7;
  EXPECT_EQ(run_length(config, 100, 10).total_steps, 7);
  config.rules.length_rule = config::LengthRule::WholeEpochs;
  EXPECT_THAT([&] { run_length(config, 100, 10); },
              ::testing::ThrowsMessage<ConfigError>(
                  HasSubstr("[train] the rules of the run leave no step: num_iters=7, num_epochs=0, steps_per_epoch=10, "
                            "length_rule=whole_epochs, first_batch_rule=kept. Give at least the steps of one epoch")));
}

// A schedule that names its argument.
class Counting : public LrSchedule {
 public:
  double rate(int64_t steps_done) const override { return static_cast<double>(steps_done); }
};

TEST(TutorialDefects, D22ASkippedUpdateDoesNotAdvanceTheSchedule) {
  const auto after_a_skip = [](config::RateRule count) {
    LrTable table(Counting(), 5, at::kCPU, count);
    table.advance(at::ones({}));
    table.advance(at::zeros({}));
    return table.current().item<double>();
  };
  EXPECT_EQ(after_a_skip(config::RateRule::Updates), 1);
  EXPECT_EQ(after_a_skip(config::RateRule::Iterations), 2) << "the check does not see the defect";
}

// The numbers after `what` in the log, in order.
std::vector<double> logged_values(const std::string& log, const std::string& what) {
  std::vector<double> values;
  const std::regex pattern(what + "=([-+0-9.einfa]+)");
  for (std::sregex_iterator match(log.begin(), log.end(), pattern), end; match != end; ++match) {
    values.push_back(std::stod((*match)[1]));
  }
  return values;
}

constexpr int64_t kSampleValues = 2 * 8 * 8;  // the longest sum behind a loss of the tiny run

testing::AssertionResult same_score(double got, double wanted) { return tests::close(got, wanted, kFp32, kSampleValues); }

// A run of two epochs of 5 steps; 6 validation samples.
config::RunConfig two_epochs(const ScratchFolder& folder) {
  config::RunConfig config = tiny_config(folder.path());
  config.model.dropout = 0;
  config.loop.num_iters = 0;
  config.loop.num_epochs = 2;
  return config;
}

TEST(TutorialDefects, D21TheInitialLossLeavesTheEpochWhole) {
  const auto iterations = [](config::FirstBatchRule rule) {
    const ScratchFolder folder;
    config::RunConfig config = two_epochs(folder);
    config.rules.first_batch_rule = rule;
    return run_tiny(config, {}).run.iterations;
  };
  EXPECT_EQ(iterations(config::FirstBatchRule::Kept), 10);
  EXPECT_EQ(iterations(config::FirstBatchRule::Consumed), 9) << "the check does not see the defect";
}

// Six samples in batches of 4 and of 2: what validation says of one model must not depend on that.
TEST(TutorialDefects, D25TheScoreDoesNotDependOnTheBatch) {
  const auto scores = [](config::ValidationRule rule) {
    std::vector<double> values;
    for (const int64_t batch : {4, 2}) {
      const ScratchFolder folder;
      config::RunConfig config = two_epochs(folder);
      config.rules.validation_rule = rule;
      config.loop.global_batch_size = batch;
      config.schedule.start_lr = config.optimizer.lr = 0;  // the same model
      values.push_back(logged_values(run_tiny(config, {}).log, "Avg val loss").front());
    }
    return values;
  };
  const auto ours = scores(config::ValidationRule::EverySample);
  EXPECT_TRUE(same_score(ours[0], ours[1]));
  const auto dropping = scores(config::ValidationRule::FullBatches);
  EXPECT_FALSE(same_score(dropping[0], dropping[1])) << "the check does not see the defect";
}

// The tutorials' mean over batches counts the samples of a short last batch more.
TEST(TutorialDefects, D25AShortBatchCountsByItsSamples) {
  const auto score = [](config::ValidationRule rule, int64_t batch) {
    const ScratchFolder folder;
    config::RunConfig config = two_epochs(folder);
    config.rules.validation_rule = rule;
    config.loop.global_batch_size = batch;
    config.schedule.start_lr = config.optimizer.lr = 0;
    return logged_values(run_tiny(config, {}).log, "Avg val loss").front();
  };
  EXPECT_TRUE(same_score(score(config::ValidationRule::EverySample, 4), score(config::ValidationRule::EverySample, 1)));
  EXPECT_FALSE(same_score(score(config::ValidationRule::Drawn, 4), score(config::ValidationRule::Drawn, 1)))
      << "the check does not see the defect";
}

TEST(TutorialDefects, D10SeedIsOneNumberThatIsLogged) {
  const auto run = [](uint64_t seed) {
    const ScratchFolder folder;
    config::RunConfig config = two_epochs(folder);
    config.loop.seed = seed;
    const std::string log = run_tiny(config, {}).log;
    EXPECT_THAT(log, HasSubstr("seed " + std::to_string(seed)));
    return logged_values(log, "Avg train loss");
  };
  EXPECT_EQ(run(4), run(4));
  EXPECT_NE(run(4), run(5));
}

TEST(TutorialDefects, D23NoLauncherIsNeededForTheLog) {
  const char* before = std::getenv("SLURM_PROCID");
  const std::string value = before == nullptr ? "" : before;
  unsetenv("SLURM_PROCID");
  const ScratchFolder folder;
  EXPECT_THAT(run_tiny(two_epochs(folder), {}).log, HasSubstr("DONE ---- rank 0"));
  if (before != nullptr) setenv("SLURM_PROCID", value.c_str(), 1);
}

// Cut at the last step of an epoch, whose picture is in the checkpoint; at a rate of 0 the model is still the initial one.
TEST(TutorialDefects, D26ThePictureIsOfTheLastTrainingBatch) {
  const ScratchFolder folder;
  config::RunConfig config = two_epochs(folder);
  config.schedule.start_lr = config.optimizer.lr = 0;
  TinyData data;
  data.interrupt_at = 24;  // 4 reads for the initial loss, then 4 a step
  const TinyOutcome outcome = run_tiny(config, data);
  ASSERT_EQ(outcome.run.iterations, 5);
  const Checkpoint checkpoint(outcome.run.folder / "checkpoints" / "step_5");
  const TinyFields fields(data, /*is_training=*/true);
  const data::Sampler sampler(fields.size(), data::Order::Shuffled, config.loop.seed);
  const at::Tensor input = at::empty({1, 2, 8, 8});
  const at::Tensor target = at::empty({1, 2, 8, 8});
  fields.read(fields.plan(sampler.at(0, 16), data::whole(fields.spec())),
              {{input.data_ptr<float>(), 128}, {target.data_ptr<float>(), 128}});
  Registries registries;
  add_builtins(registries);
  const model::ModelPtr model = build_model(registries, config, fields.spec(), at::kCPU);
  const at::NoGradGuard no_grad;
  const at::Tensor zero = at::zeros({}, at::kLong);
  const at::Tensor prediction = model->forward(input, {.seed = config.loop.seed, .step = zero, .sample = zero.view({1})});
  EXPECT_TRUE(at::equal(checkpoint.read("picture.target"), target.select(0, 0).select(0, 0)));
  EXPECT_TRUE(
      tests::close(checkpoint.read("picture.prediction"), prediction.select(0, 0).select(0, 0), at::kFloat, kSampleValues));
}

template <typename Kind>
std::string refused(const config::RunConfig& config) {
  try {
    run_tiny(config, {});
  } catch (const Kind& error) {
    return error.what();
  }
  return "no error of this kind";
}

TEST(Compat, AResumedRunKeepsItsRules) {
  const ScratchFolder folder;
  config::RunConfig config = two_epochs(folder);
  config.loop.compat = config::Compat::Sc23;
  config.rules.validation_rule = config::ValidationRule::FullBatches;
  const TinyOutcome first = run_tiny(config, {});
  EXPECT_THAT(first.log, HasSubstr("Matmuls in fp32: tf32 on (default)"));
  config.loop.resume = true;
  EXPECT_TRUE(run_tiny(config, {}).run.completed);
  config.loop.compat = config::Compat::Dl4sci25;
  config.rules.validation_rule = config::ValidationRule::EverySample;
  const std::string text = refused<ConfigError>(config);
  EXPECT_THAT(text, HasSubstr("[train] the run to resume has other rules: path="));
  EXPECT_THAT(text, HasSubstr("validation_rule=full_batches and every_sample, compat=sc23 and dl4sci25. Resume with the rules"));
  // Without the run's own file the checkpoint says it.
  std::filesystem::remove(first.run.folder / "config.yaml");
  EXPECT_THAT(refused<CheckpointError>(config), HasSubstr("[checkpoint] it was saved under other rules: path="));
}

}  // namespace
}  // namespace welkin::train
