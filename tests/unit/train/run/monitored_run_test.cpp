// SPDX-License-Identifier: Apache-2.0
// Runs that are judged by a metric: early stopping, the best checkpoint, lines per step, metrics.csv.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "core/error.h"
#include "tiny_run.h"
#include "train/checkpoint/checkpoint_store.h"

namespace welkin::train {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A rate of 0: no validation after the first is better than it.
config::RunConfig standing_config(const std::filesystem::path& root) {
  config::RunConfig config = tiny_config(root);
  config.optimizer.lr = config.schedule.start_lr = 0;
  config.loop.num_iters = 50;
  config.loop.early_stopping = {"val_loss", "2"};
  return config;
}

std::vector<std::string> csv_rows(const RunOutcome& run) {
  std::istringstream text(read_file(run.folder / "metrics.csv", 1 << 20));
  std::vector<std::string> rows;
  for (std::string row; std::getline(text, row);) rows.push_back(row);
  return rows;
}

TEST(EarlyStopping, EndsARunThatNoLongerImproves) {
  const ScratchFolder folder;
  const TinyOutcome outcome = run_tiny(standing_config(folder.path()), {});
  EXPECT_TRUE(outcome.run.completed);
  EXPECT_EQ(outcome.run.iterations, 15);  // the first epoch is the best, then two without improvement
  EXPECT_THAT(outcome.log, HasSubstr("Early stopping at step 15: val_loss has not improved in 2 validations: best "));
  EXPECT_THAT(outcome.log, HasSubstr(" at step 5\n"));
  EXPECT_THAT(outcome.log, HasSubstr("DONE ---- rank 0"));
  EXPECT_TRUE(std::filesystem::exists(outcome.run.folder / "checkpoints" / "step_15" / "index.json"));
}

TEST(EarlyStopping, DoesNotEndARunThatImproves) {
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  config.loop.early_stopping = {"val_rmse_v", "1"};
  const TinyOutcome outcome = run_tiny(config, {});
  EXPECT_EQ(outcome.run.iterations, 13);
  EXPECT_THAT(outcome.log, Not(HasSubstr("Early stopping")));
}

TEST(EarlyStopping, AnImprovementBelowMinDeltaDoesNotCount) {
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  config.loop.early_stopping = {"val_loss", "1", "10"};
  const TinyOutcome outcome = run_tiny(config, {});
  EXPECT_EQ(outcome.run.iterations, 10);
  EXPECT_THAT(outcome.log, HasSubstr("val_loss has not improved by more than 10 in 1 validation: best "));
}

TEST(EarlyStopping, AResumedRunGoesOnCounting) {
  const ScratchFolder folder;
  config::RunConfig config = standing_config(folder.path());
  TinyData data;
  data.interrupt_at = 50;  // in the third epoch
  const TinyOutcome first = run_tiny(config, data);
  EXPECT_FALSE(first.run.completed);
  config.loop.resume = true;
  EXPECT_EQ(run_tiny(config, {}).run.iterations, 15);
  const TinyOutcome again = run_tiny(config, {});
  EXPECT_EQ(again.run.iterations, 15);
  EXPECT_THAT(again.log, HasSubstr("Early stopping had ended the run: val_loss has not improved in 2 validations: best "));
  config.loop.early_stopping = {"val_loss", "4"};
  EXPECT_EQ(run_tiny(config, {}).run.iterations, 25);
}

TEST(EarlyStopping, AnotherMetricIsCountedAnew) {
  const ScratchFolder folder;
  config::RunConfig config = standing_config(folder.path());
  EXPECT_EQ(run_tiny(config, {}).run.iterations, 15);
  config.loop.resume = true;
  config.loop.early_stopping = {"val_rmse_u", "2"};
  EXPECT_EQ(run_tiny(config, {}).run.iterations, 30);
}

TEST(BestMetric, ChoosesTheCheckpoint) {
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  config.loop.best_metric = "val_rmse_v";
  const TinyOutcome outcome = run_tiny(config, {});
  const auto best = CheckpointStore(outcome.run.folder / "checkpoints").best();
  ASSERT_TRUE(best);
  EXPECT_EQ(best->metric, "val_rmse_v");
  EXPECT_GT(best->value, 0);
  config.loop.resume = true;
  config.loop.num_iters = 15;
  config.loop.best_metric = "val_loss";
  EXPECT_THAT(run_tiny(config, {}).log,
              HasSubstr("The best checkpoint was chosen by val_rmse_v and is now chosen by val_loss: it is sought anew"));
  EXPECT_EQ(CheckpointStore(outcome.run.folder / "checkpoints").best()->metric, "");
}

TEST(BestMetric, AnUnknownNameNamesThoseThereAre) {
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  config.loop.best_metric = "val_rmse_w";
  try {
    run_tiny(config, {});
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "[train] unknown metric: best_metric=val_rmse_w. Nearest: val_rmse_u, val_rmse_v. A validation of these data "
                 "reports val_loss, val_rmse_u, val_rmse_v.");
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "base"));
  config.loop.best_metric = "RMSE(v)/valid";  // as TensorBoard shows it
  EXPECT_TRUE(run_tiny(config, {}).run.completed);
}

TEST(StepLog, SaysHowTheRunGoesOn) {
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  config.output.log_every_n_steps = 4;
  const std::string log = run_tiny(config, {}).log;
  EXPECT_THAT(log,
              ::testing::ContainsRegex("Step 4/13, epoch 1/3: loss=[0-9.]+, lr=[0-9.e-]+, [0-9.]+ samples/s, 0:0[0-9] left\n"));
  EXPECT_THAT(log, HasSubstr("Step 12/13, epoch 3/3: loss="));
  EXPECT_THAT(log, Not(HasSubstr("Step 5/13")));
}

TEST(MetricsCsv, HoldsWhatGoesToTensorBoardAlsoAcrossAResume) {
  const ScratchFolder whole, cut;
  config::RunConfig config = tiny_config(whole.path());
  config.output.csv = true;
  config.loop.best_metric = "val_rmse_v";
  const auto rows = csv_rows(run_tiny(config, {}).run);
  ASSERT_EQ(rows.size(), 5u);  // header, step 0, three epochs
  EXPECT_EQ(rows[0],
            "step,epoch,Loss/train,Loss/valid,RMSE(u)/valid,RMSE(v)/valid,Learning Rate,Avg iters per sec,Avg samples per sec");
  EXPECT_THAT(rows[1], ::testing::StartsWith("0,0,"));
  EXPECT_THAT(rows[4], ::testing::StartsWith("13,3,"));
  config.output.expdir = cut.path().string();
  TinyData data;
  data.interrupt_at = 35;
  run_tiny(config, data);
  config.loop.resume = true;
  const auto resumed = csv_rows(run_tiny(config, {}).run);
  ASSERT_EQ(resumed.size(), rows.size());
  const auto without_times = [](const std::string& row) { return row.substr(0, row.rfind(',', row.rfind(',') - 1)); };
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(without_times(resumed[i]), without_times(rows[i]));
}

}  // namespace
}  // namespace welkin::train
