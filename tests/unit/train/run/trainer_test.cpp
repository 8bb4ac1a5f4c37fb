// SPDX-License-Identifier: Apache-2.0
#include "train/run/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <regex>

#include "core/error.h"
#include "number_close.h"
#include "tiny_run.h"
#include "train/checkpoint/checkpoint.h"
#include "train/run/nonfinite_watch.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// The numbers after `what` in the log, in order.
std::vector<double> logged(const std::string& log, const std::string& what) {
  std::vector<double> values;
  const std::regex pattern(what + "=([-+0-9.einfa]+)");
  for (std::sregex_iterator match(log.begin(), log.end(), pattern), end; match != end; ++match) {
    values.push_back(std::stod((*match)[1]));
  }
  return values;
}

std::map<std::string, std::string> checkpoint_files(const fs::path& run, int64_t step) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints" / ("step_" + std::to_string(step)))) {
    if (entry.path().extension() == ".safetensors") files[entry.path().filename()] = read_file(entry.path(), 1 << 26);
  }
  return files;
}

template <typename Kind, typename Function>
std::string error_text(Function&& function) {
  try {
    function();
  } catch (const Kind& error) {
    return error.what();
  }
  return "no error of this kind";
}

TEST(Trainer, StopsAtTheLastStepExactlyAndValidatesThePartialEpoch) {
  const ScratchFolder folder;
  const TinyOutcome outcome = run_tiny(tiny_config(folder.path()), {});
  EXPECT_TRUE(outcome.run.completed);
  EXPECT_EQ(outcome.run.iterations, 13);
  EXPECT_EQ(logged(outcome.log, "Avg train loss").size(), 3u);  // 5 + 5 + 3 steps
  EXPECT_EQ(logged(outcome.log, "Avg val loss").size(), 3u);
  EXPECT_THAT(outcome.log, HasSubstr("DONE ---- rank 0"));
  EXPECT_EQ(outcome.run.folder, folder / "base" / "1GPU" / "00");
  EXPECT_TRUE(fs::exists(outcome.run.folder / "checkpoints" / "step_13" / "index.json"));
}

TEST(Trainer, LearnsAndCountsEpochsWhereTheyAreGiven) {
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  config.loop.num_iters = 0;
  config.loop.num_epochs = 12;
  config.schedule.start_lr = 1e-2;
  const TinyOutcome outcome = run_tiny(config, {});
  EXPECT_EQ(outcome.run.iterations, 60);
  const auto losses = logged(outcome.log, "Avg val loss");
  ASSERT_EQ(losses.size(), 12u);
  EXPECT_LT(losses.back(), 0.5 * losses.front());
}

TEST(Trainer, TheLossCurveDoesNotDependOnTheMicroBatch) {
  std::vector<std::vector<double>> curves;
  for (const int64_t micro : {0, 1, 3}) {  // 4 = 3 + 1: a shorter last group
    const ScratchFolder folder;
    config::RunConfig config = tiny_config(folder.path());
    config.loop.micro_batch_size = micro;
    const std::string log = run_tiny(config, {}).log;
    curves.push_back(logged(log, "Avg train loss"));
    for (const double loss : logged(log, "Avg val loss")) curves.back().push_back(loss);
  }
  for (const auto& curve : curves) {
    ASSERT_EQ(curve.size(), 6u);
    for (size_t i = 0; i < curve.size(); ++i)
      EXPECT_TRUE(tests::within(curve[i], curves[0][i],
                                {5e-6, "six decimals are logged: half of the last on each side, and 13 steps' roundings"}));
  }
}

// The interrupted run is cut in the middle of the second epoch by a real signal, then resumed.
void expect_equal_after_interrupt(config::RunConfig config, int64_t interrupt_at) {
  const ScratchFolder whole, cut;
  config.output.expdir = whole.path().string();
  const TinyOutcome reference = run_tiny(config, {});
  config.output.expdir = cut.path().string();
  TinyData data;
  data.interrupt_at = interrupt_at;
  const TinyOutcome first = run_tiny(config, data);
  EXPECT_FALSE(first.run.completed);
  EXPECT_LT(first.run.iterations, 13);
  EXPECT_THAT(first.log, HasSubstr("Interrupted by SIGTERM at step " + std::to_string(first.run.iterations)));
  EXPECT_THAT(first.log, HasSubstr("Continue with: welkin train --resume"));
  config.loop.resume = true;
  const TinyOutcome second = run_tiny(config, {});
  EXPECT_TRUE(second.run.completed);
  EXPECT_EQ(checkpoint_files(first.run.folder, 13), checkpoint_files(reference.run.folder, 13));
  for (const char* what : {"Avg train loss", "Avg val loss"})
    EXPECT_EQ(logged(second.log, what), logged(reference.log, what)) << what;
}

TEST(Trainer, AnInterruptedRunEqualsAnUninterruptedOneBitForBit) {
  const ScratchFolder folder;
  const config::RunConfig config = tiny_config(folder.path());
  // 4 reads for the initial loss, then 4 a step: in the first epoch, at its last step, in the second.
  for (const int64_t read : {9, 24, 35}) expect_equal_after_interrupt(config, read);
}

TEST(Trainer, ResumesBitForBitUnderBf16AndAccumulation) {
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  config.precision.amp_mode = config::AmpMode::Bf16;
  config.loop.micro_batch_size = 3;
  config.optimizer.clip_norm = 0.5;
  expect_equal_after_interrupt(config, 35);
}

TEST(Trainer, ResumesBitForBitUnderFp16WithItsScale) {
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  config.precision.amp_mode = config::AmpMode::Fp16;
  config.precision.loss_scale = 1 << 24;  // overflows at first: the scale moves
  config.precision.loss_scale_window = 3;
  expect_equal_after_interrupt(config, 35);
}

// A run of 13 steps, the third epoch of five cut short, then made longer. The rate does not depend on the length.
TEST(Trainer, AFinishedRunThatIsMadeLongerEqualsTheLongRunBitForBit) {
  const ScratchFolder whole, extended;
  config::RunConfig config = tiny_config(whole.path());
  config.schedule.schedule = "constant";
  config.loop.num_iters = 18;
  const TinyOutcome reference = run_tiny(config, {});
  config.output.expdir = extended.path().string();
  config.loop.num_iters = 13;
  EXPECT_EQ(logged(run_tiny(config, {}).log, "Avg val loss").size(), 3u);
  config.loop.resume = true;
  const TinyOutcome again = run_tiny(config, {});
  EXPECT_EQ(logged(again.log, "Avg val loss").size(), 3u);  // still finished: nothing is done twice
  EXPECT_THAT(again.log,
              HasSubstr("Nothing is left to do: the run was resumed at step 13 and ends at step 13, by num_iters=13. A "
                        "larger --num_iters goes on from there"));
  config.loop.num_iters = 18;
  const TinyOutcome longer = run_tiny(config, {});
  EXPECT_TRUE(longer.run.completed);
  EXPECT_THAT(longer.log, HasSubstr("Resumed at step 13"));
  EXPECT_EQ(longer.log.rfind("Nothing is left to do"), longer.log.find("Nothing is left to do"));  // of the run before alone
  EXPECT_EQ(checkpoint_files(longer.run.folder, 18), checkpoint_files(reference.run.folder, 18));
  const auto train = logged(longer.log, "Avg train loss"), valid = logged(longer.log, "Avg val loss");
  const auto train_whole = logged(reference.log, "Avg train loss"), valid_whole = logged(reference.log, "Avg val loss");
  ASSERT_EQ(train.size(), 5u);  // the cut third epoch, and the whole one
  ASSERT_EQ(train_whole.size(), 4u);
  for (const size_t epoch : {2, 3}) {
    EXPECT_EQ(train[epoch + 1], train_whole[epoch]);
    EXPECT_EQ(valid[epoch + 1], valid_whole[epoch]);
  }
}

TEST(Trainer, AFinishedRunOfWholeEpochsGoesOnWithTheNext) {
  const ScratchFolder whole, extended;
  config::RunConfig config = tiny_config(whole.path());
  config.schedule.schedule = "constant";
  config.loop.num_iters = 0;
  config.loop.num_epochs = 3;
  const TinyOutcome reference = run_tiny(config, {});
  config.output.expdir = extended.path().string();
  config.loop.num_epochs = 2;
  run_tiny(config, {});
  config.loop.resume = true;
  config.loop.num_epochs = 3;
  const TinyOutcome longer = run_tiny(config, {});
  EXPECT_EQ(checkpoint_files(longer.run.folder, 15), checkpoint_files(reference.run.folder, 15));
  EXPECT_EQ(logged(longer.log, "Avg train loss"), logged(reference.log, "Avg train loss"));
}

// Interrupted within an epoch and then asked for fewer steps than it has done: what is left to do is the validation.
TEST(Trainer, ARunThatIsLongerAlreadyThanAskedForIsFinished) {
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  TinyData data;
  data.interrupt_at = 35;
  const int64_t done = run_tiny(config, data).run.iterations;
  ASSERT_GT(done, 6);
  config.loop.resume = true;
  config.loop.num_iters = 6;
  const TinyOutcome shorter = run_tiny(config, {});
  EXPECT_TRUE(shorter.run.completed);
  EXPECT_EQ(shorter.run.iterations, done);
  EXPECT_EQ(logged(shorter.log, "Avg val loss").size(), 2u);
}

TEST(Trainer, ResumeWithoutACheckpointStartsFromTheBeginning) {
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  config.loop.resume = true;
  EXPECT_THAT(run_tiny(config, {}).log, HasSubstr("There is no checkpoint to resume from"));
  const TinyOutcome again = run_tiny(config, {});  // it is complete: nothing to do
  EXPECT_TRUE(again.run.completed);
  EXPECT_EQ(logged(again.log, "Avg train loss").size(), 3u);
}

// Its folder has the number of ranks in its name: without a word the work of the others would seem lost.
TEST(Trainer, ResumeNamesTheFolderOfAnotherNumberOfRanks) {
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  config.loop.resume = true;
  EXPECT_THAT(run_tiny(config, {}).log, Not(HasSubstr("Another number of ranks")));
  fs::rename(folder.path() / "base" / "1GPU", folder.path() / "base" / "4GPU");
  const std::string other = (folder.path() / "base" / "4GPU" / "00").string();
  EXPECT_THAT(run_tiny(config, {}).log,
              HasSubstr("Another number of ranks has another folder, and " + other + " has checkpoints"));
}

TEST(Trainer, AnOlderCheckpointIsUsedWhenTheNewestIsDamaged) {
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  config.loop.checkpoint_interval = 4;
  const fs::path run = run_tiny(config, {}).run.folder;
  std::ofstream(run / "checkpoints" / "step_13" / "model.safetensors", std::ios::app) << "x";
  config.loop.resume = true;
  const std::string log = run_tiny(config, {}).log;
  EXPECT_THAT(log, HasSubstr("a file has the wrong size"));
  EXPECT_THAT(log, HasSubstr("Resumed at step 1"));  // 10 or 12
}

TEST(Trainer, ANonFiniteLossStopsTheRunWithItsFacts) {
  const ScratchFolder folder;
  TinyData data;
  data.bad_index = 5;
  config::RunConfig config = tiny_config(folder.path());
  const std::string text = error_text<NonFiniteError>([&] { run_tiny(config, data); });
  EXPECT_THAT(text, HasSubstr("[train] event nonfinite_loss: step="));
  EXPECT_THAT(text, HasSubstr("loss=nan"));
  EXPECT_THAT(text, HasSubstr("rate=0.00"));
  EXPECT_THAT(text, ::testing::ContainsRegex("samples=\\[[0-9 ]*5[0-9 ]*\\]"));
  EXPECT_THAT(text, HasSubstr("last_checkpoint=none"));
  EXPECT_THAT(text, HasSubstr("not finite in the data: index=5, input_channel=0 (u), row=0, column=3, value=nan. Fill these"));
}

TEST(Trainer, ANonFiniteLossIsSkippedWhereTheConfigurationSaysSo) {
  const ScratchFolder folder;
  TinyData data;
  data.bad_index = 5;
  config::RunConfig config = tiny_config(folder.path());
  config.loop.on_nonfinite = config::NonFiniteAction::Skip;
  const TinyOutcome outcome = run_tiny(config, data);
  EXPECT_TRUE(outcome.run.completed);
  EXPECT_THAT(outcome.log, HasSubstr("action=skip"));
  EXPECT_THAT(outcome.log, HasSubstr("Skipped updates=1"));
  for (const double loss : logged(outcome.log, "Avg train loss")) EXPECT_TRUE(std::isfinite(loss));
}

TEST(Trainer, ABatchLargerThanTheDataIsAnError) {
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  config.loop.global_batch_size = 64;
  EXPECT_EQ(error_text<ConfigError>([&] { run_tiny(config, {}); }),
            "[train] the batch is larger than the data: global_batch_size=64, training samples=20. Take a smaller "
            "global_batch_size, or more data.");
}

TEST(Trainer, AFolderOfAnotherConfigurationIsAnErrorUnlessResumed) {
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  run_tiny(config, {});
  config.schedule.end_lr = 1e-4;
  const std::string text = error_text<ConfigError>([&] { run_tiny(config, {}); });
  EXPECT_THAT(text, HasSubstr("[train] the run folder holds another configuration: path="));
  EXPECT_THAT(text, HasSubstr("end_lr"));
  EXPECT_THAT(text, HasSubstr("--run_num"));
  config.loop.resume = true;
  EXPECT_THAT(run_tiny(config, {}).log, HasSubstr("The resumed run had another configuration"));
}

// Thirteen batches of 4 are two epochs of 20 samples and 12 samples more.
TEST(Trainer, AResumedRunWithBatchesOfAnotherSizeGoesOnAtTheSameSample) {
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  run_tiny(config, {});
  config.loop.resume = true;
  config.loop.num_iters = 14;
  config.loop.global_batch_size = 8;
  EXPECT_THAT(
      error_text<ConfigError>([&] { run_tiny(config, {}); }),
      HasSubstr("no batch begins where the checkpoint stands in its epoch: samples done=12, global_batch_size=8, before=4."));
  config.loop.global_batch_size = 6;
  const TinyOutcome outcome = run_tiny(config, {});
  const RunPosition position = Checkpoint(outcome.run.folder / "checkpoints" / "step_14").index().position;
  EXPECT_EQ(position.epoch, 3);  // the epoch had one batch of 6 left, and leaves a last one of 2 out
  EXPECT_EQ(position.step_in_epoch, 0);
}

TEST(Trainer, ARepeatedRunMovesTheEarlierCheckpointsAside) {
  const ScratchFolder folder;
  const config::RunConfig config = tiny_config(folder.path());
  run_tiny(config, {});
  const TinyOutcome again = run_tiny(config, {});
  EXPECT_THAT(again.log, HasSubstr("checkpoints.old-1"));
  EXPECT_TRUE(fs::exists(again.run.folder / "checkpoints.old-1" / "step_13"));
}

TEST(Trainer, AReadOnlyFolderIsADataErrorThatNamesIt) {
  if (geteuid() == 0) {
    // root may write anywhere: a file in the way stands for what the system refuses.
    const ScratchFolder folder;
    std::ofstream(folder / "base") << "x";
    EXPECT_THAT(error_text<DataError>([&] { run_tiny(tiny_config(folder.path()), {}); }), HasSubstr((folder / "base").string()));
    return;
  }
  const ScratchFolder folder;
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THAT(error_text<DataError>([&] { run_tiny(tiny_config(folder.path()), {}); }), HasSubstr(folder.path().string()));
  fs::permissions(folder.path(), fs::perms::owner_all);
}

// How many samples are being read.
class OpenReads : public observe::SpanSink {
 public:
  void begin(std::string_view name) noexcept override { open_ += name == "read"; }
  void end(std::string_view name, observe::SpanClock::time_point /*began*/) noexcept override { open_ -= name == "read"; }
  int64_t number() const { return open_; }

 private:
  std::atomic<int64_t> open_ = 0;
};

// Under a sanitizer, or with MALLOC_PERTURB_ set, a thread that told of its sample when nobody was there any more ended the
// process.
TEST(Trainer, ThreadsThatReadAheadWhenTheRunEndsTellOfTheirSamples) {
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  config.loop.num_iters = 2;
  config.data.num_data_workers = 2;
  TinyData data;
  data.read_time = std::chrono::milliseconds(20);
  OpenReads reads;
  EXPECT_TRUE(run_tiny(config, data, {.span_recorder = &reads}).run.completed);
  EXPECT_EQ(reads.number(), 0);
  EXPECT_GT(data.training_reads, 8);  // ahead of two steps of four samples
}

TEST(Trainer, ACudaDeviceThatIsAbsentIsAnError) {
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  config.loop.device = config::DeviceChoice::Cuda;
  EXPECT_THAT(error_text<ConfigError>([&] { run_tiny(config, {}); }),
              HasSubstr("there is no GPU that torch can use: device=cuda"));
}

TEST(Registries, RefuseANameTwice) {
  Registries registries;
  add_builtins(registries);
  EXPECT_EQ(error_text<ConfigError>([&] { registries.optimizers.add("Adam", {.make = adam}); }),
            "[registry] the name is taken: optimizer=Adam. Register it under another name.");
  EXPECT_THAT(error_text<ConfigError>([&] { registries.losses.at("l3"); }),
              HasSubstr("Choose one of: huber, l1_rho, mae, mse, relative_l2"));
}

}  // namespace
}  // namespace welkin::train
