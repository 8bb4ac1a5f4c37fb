// SPDX-License-Identifier: Apache-2.0
// Runs with the optimizers whose states are not like the weights, and with a moving average of weights: cut and resumed, they
// equal the run that was not, bit for bit.
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "tiny_run.h"
#include "train/checkpoint/checkpoint.h"
#include "train/interchange/state.h"

namespace welkin::train {
namespace {

struct OptimizerRun {
  std::string name, optimizer, state = "fp32";
};

config::RunConfig config_for(const OptimizerRun& run, const ScratchFolder& root) {
  config::RunConfig config = tiny_config(root.path());
  config.model.embed_dim = 32;  // the MLP's weights have 4096 elements
  config.model.depth = 1;
  config.optimizer.optimizer = run.optimizer;
  config.optimizer.optimizer_state = config::choice_named<config::OptimizerState>(run.state).value();
  config.optimizer.weight_decay = 0.1;
  config.optimizer.clip_norm = 0.5;
  config.optimizer.ema_decay = 0.9;
  config.loop.num_iters = 7;
  return config;
}

std::map<std::string, std::string> files_at(const std::filesystem::path& run, int64_t step) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(run / "checkpoints" / ("step_" + std::to_string(step)))) {
    if (entry.path().extension() == ".safetensors") files[entry.path().filename()] = read_file(entry.path(), 1 << 26);
  }
  return files;
}

class OptimizerRuns : public ::testing::TestWithParam<OptimizerRun> {};

TEST_P(OptimizerRuns, ResumeBitForBit) {
  const ScratchFolder whole, cut;
  config::RunConfig config = config_for(GetParam(), whole);
  const TinyOutcome reference = run_tiny(config, {});
  config.output.expdir = cut.path().string();
  TinyData interrupted;
  interrupted.interrupt_at = 17;  // 4 for the initial loss, 4 a step
  EXPECT_FALSE(run_tiny(config, interrupted).run.completed);
  config.loop.resume = true;
  const TinyOutcome resumed = run_tiny(config, {});
  EXPECT_TRUE(resumed.run.completed);
  const auto wanted = files_at(reference.run.folder, 7);
  EXPECT_TRUE(wanted.contains("ema.safetensors"));
  EXPECT_EQ(files_at(resumed.run.folder, 7), wanted);
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerRuns,
                         ::testing::Values(OptimizerRun{"Adafactor", "Adafactor"}, OptimizerRun{"AdamW_bf16", "AdamW", "bf16"},
                                           OptimizerRun{"Adam_8bit", "Adam", "8bit"}),
                         [](const auto& row) { return row.param.name; });

// Another optimizer than the one that saved: its states are named, and kept where they fit, or begin anew.
TEST(SwitchedOptimizer, KeepsWhatFitsOrBeginsAnew) {
  using config::ResumedOptimizer;
  const ScratchFolder root;
  config::RunConfig config = config_for({"AdamW", "AdamW"}, root);
  config.loop.num_iters = 5;
  run_tiny(config, {});
  config.loop.resume = true;
  config.loop.num_iters = 7;
  config.optimizer.optimizer = "SGD";
  try {
    run_tiny(config, {});
    ADD_FAILURE() << "no error";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("group=optimizer, not stored="));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("or say --resume_optimizer fitting (keeps the states that fit) or none"));
  }
  config.optimizer.optimizer = "LAMB";  // states of the same names
  try {
    run_tiny(config, {});
    ADD_FAILURE() << "no error";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("it was saved by another optimizer, whose states may mean something else"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("optimizer=AdamW, the run's=LAMB"));
  }
  config.loop.resume_optimizer = ResumedOptimizer::Fitting;
  const TinyOutcome kept = run_tiny(config, {});
  EXPECT_TRUE(kept.run.completed);
  EXPECT_THAT(kept.log, ::testing::HasSubstr("are those of the checkpoint (steps exp_avg."));
  config.optimizer.optimizer = "SGD";
  config.loop.num_iters = 9;
  config.loop.resume_optimizer = ResumedOptimizer::None;
  const TinyOutcome anew = run_tiny(config, {});
  EXPECT_TRUE(anew.run.completed);
  EXPECT_THAT(anew.log, ::testing::HasSubstr("Optimizer states: 0 of "));
}

TEST(AveragedRun, ARunWithoutAnAverageBeginsOneWhenItIsResumed) {
  const ScratchFolder root;
  config::RunConfig config = config_for({"AdamW", "AdamW"}, root);
  config.optimizer.ema_decay = 0;
  config.loop.num_iters = 5;
  const std::filesystem::path folder = run_tiny(config, {}).run.folder;
  EXPECT_THROW(interchange::averaged(interchange::open_state(folder / "checkpoints" / "step_5")), CheckpointError);
  config.optimizer.ema_decay = 0.9;
  config.loop.num_iters = 7;
  config.loop.resume = true;
  const TinyOutcome resumed = run_tiny(config, {});
  EXPECT_THAT(resumed.log, ::testing::HasSubstr("The checkpoint has no moving average of weights"));
  EXPECT_TRUE(files_at(resumed.run.folder, 7).contains("ema.safetensors"));
}

// Validation of the average is that of a run whose weights were the average; training does not see it.
TEST(AveragedRun, ValidationLooksAtTheAverageAndLeavesTheRunAlone) {
  std::map<bool, std::map<std::string, std::string>> files;
  std::map<bool, double> losses;
  for (const bool averaged : {false, true}) {
    const ScratchFolder root;
    config::RunConfig config = config_for({"AdamW", "AdamW"}, root);
    config.optimizer.ema_validate = averaged;
    const TinyOutcome outcome = run_tiny(config, {});
    files[averaged] = files_at(outcome.run.folder, 7);
    losses[averaged] = *Checkpoint(outcome.run.folder / "checkpoints" / "step_7").index().validation_loss;
  }
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "ema.safetensors"}) {
    EXPECT_EQ(files[true][name], files[false][name]) << name;
  }
  EXPECT_NE(losses[true], losses[false]);
}

TEST(AveragedRun, TheAverageTakesThePlaceOfTheWeights) {
  const ScratchFolder root;
  const TinyOutcome outcome = run_tiny(config_for({"AdamW", "AdamW"}, root), {});
  const auto folder = outcome.run.folder / "checkpoints" / "step_7";
  const Checkpoint checkpoint(folder);
  const interchange::State averaged = interchange::averaged(interchange::open_state(folder));
  for (const std::string& name : checkpoint.index().parameters) {
    EXPECT_TRUE(at::equal(averaged.find(name)->read(), checkpoint.read("ema." + name))) << name;
    EXPECT_FALSE(at::equal(checkpoint.read(name), checkpoint.read("ema." + name))) << name;
  }
  EXPECT_FALSE(averaged.has_group("ema"));
}

}  // namespace
}  // namespace welkin::train
