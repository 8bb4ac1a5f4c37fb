// SPDX-License-Identifier: Apache-2.0
// Faults that a run of one process outlives or names, and what it does about spikes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "tiny_run.h"
#include "train/inject/fault_injector.h"
#include "train/run/nonfinite_watch.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

TinyOutcome run_faulty(const config::RunConfig& config, const std::string& faults) {
  FaultInjector injector(parse_faults(faults, 1), 0);
  return run_tiny(config, {}, {.span_recorder = injector.watches_spans() ? &injector : nullptr, .faults = &injector});
}

std::string model_of(const fs::path& run, int64_t step) {
  return read_file(run / "checkpoints" / ("step_" + std::to_string(step)) / "model.safetensors", 1 << 26);
}

std::string file_of(const fs::path& root, const char* name) { return read_file(root / "base" / "1GPU" / "00" / name, 1 << 24); }

config::RunConfig watching(const fs::path& root, config::SpikeAction action) {
  config::RunConfig config = tiny_config(root);
  config.health = {.on_spike = action, .spike_window = 8, .spike_patience = 2, .rollback_interval = 3};
  config.loop.num_iters = 9;
  config.loop.checkpoint_interval = 3;
  config.loop.keep_checkpoints = 9;
  return config;
}

TEST(FaultyRun, AnExceptionEndsItWithItsText) {
  const ScratchFolder folder;
  std::string text;
  try {
    run_faulty(tiny_config(folder.path()), "exception:step=4");
  } catch (const Error& error) {
    text = error.what();
  }
  EXPECT_EQ(text, "[inject] an exception was asked for: step=4, fault=exception:step=4. Leave --inject out.");
  EXPECT_THAT(file_of(folder.path(), "out.log"), HasSubstr("Fault injected: exception:step=4, at step 4"));
  const std::string events = file_of(folder.path(), "events.jsonl");
  EXPECT_THAT(events, HasSubstr("\"event\":\"started\",\"step\":0,\"rank\":0,\"total_steps\":13"));
  EXPECT_THAT(events, HasSubstr("\"event\":\"fault\",\"step\":4,\"rank\":0,\"fault\":\"exception\""));
  EXPECT_THAT(events, HasSubstr("\"event\":\"failed\",\"step\":3,\"rank\":0,\"error\":\"[inject] an exception"));
  EXPECT_THAT(file_of(folder.path(), "status.json"), HasSubstr("\"state\": \"failed\""));
}

// 13 steps, stopped by their number after 6 of them and gone on with the same command.
TEST(FaultyRun, AResumedRunLeavesOutWhatLiesBehindIt) {
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  config.loop.num_iters = 6;
  run_tiny(config, {});
  config.loop.num_iters = 9;
  config.loop.resume = true;
  EXPECT_THROW(run_faulty(config, "exception:step=6;slow:step=4,steps=5,seconds=0;exception:step=9"), Error);
  const std::string log = file_of(folder.path(), "out.log");
  EXPECT_THAT(log, HasSubstr("Fault left out, the run is past its step: exception:step=6"));
  for (const char* step : {"at step 7", "at step 8"}) EXPECT_THAT(log, HasSubstr(std::string("steps=5,seconds=0, ") + step));
  EXPECT_THAT(log, Not(HasSubstr("steps=5,seconds=0, at step 9")));
  EXPECT_THAT(log, HasSubstr("Fault injected: exception:step=9, at step 9"));
}

TEST(FaultyRun, AFaultWhosePlaceNeverCameIsNamed) {
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  config.loop.num_iters = 4;
  run_faulty(config, "slow:step=2,seconds=0;kill:step=5");
  const std::string log = file_of(folder.path(), "out.log");
  EXPECT_THAT(log, HasSubstr("Fault left out, its place never came: kill:step=5"));
  EXPECT_THAT(log, Not(HasSubstr("its place never came: slow")));
}

TEST(FaultyRun, AGradientOfNanIsTheEventOfItsStep) {
  const ScratchFolder folder;
  std::string text;
  try {
    run_faulty(tiny_config(folder.path()), "nan_gradient:step=4");
  } catch (const NonFiniteError& error) {
    text = error.what();
  }
  EXPECT_THAT(text, HasSubstr("[train] event nonfinite_gradient: step=4, loss=0."));
  EXPECT_THAT(file_of(folder.path(), "events.jsonl"),
              HasSubstr("\"event\":\"nonfinite_gradient\",\"step\":4,\"rank\":0,\"loss\":0."));
}

TEST(FaultyRun, ACheckpointThatCannotBeWrittenIsLoggedAndTheNextIsSaved) {
  for (const std::string phase : {"create", "write", "sync", "rename"}) {
    const ScratchFolder folder;
    config::RunConfig config = tiny_config(folder.path());
    config.loop.checkpoint_interval = 4;
    const TinyOutcome outcome = run_faulty(config, "write_error:step=4,error=ENOSPC,phase=" + phase);
    EXPECT_TRUE(outcome.run.completed);
    EXPECT_THAT(outcome.log, HasSubstr("No space left on device"));
    EXPECT_FALSE(fs::exists(outcome.run.folder / "checkpoints" / "step_4")) << phase;
    EXPECT_TRUE(fs::exists(outcome.run.folder / "checkpoints" / "step_13")) << phase;
    EXPECT_THAT(file_of(folder.path(), "events.jsonl"), HasSubstr("\"event\":\"checkpoint\",\"step\":8"));
  }
}

TEST(FaultyRun, AWrongTimeAndASlowStepChangeNoNumber) {
  const ScratchFolder one, other;
  const TinyOutcome whole = run_tiny(tiny_config(one.path()), {});
  const TinyOutcome late =
      run_faulty(tiny_config(other.path()), "wrong_time:step=3,seconds=-864000;slow:step=5,seconds=0.01,phase=forward");
  EXPECT_EQ(model_of(whole.run.folder, 13), model_of(late.run.folder, 13));
  EXPECT_THAT(late.log, HasSubstr("Fault injected: slow:step=5,seconds=0.01,phase=forward, at step 5"));
}

TEST(FaultyRun, AFlippedBitChangesTheWeights) {
  const ScratchFolder one, other;
  const TinyOutcome whole = run_tiny(tiny_config(one.path()), {});
  const TinyOutcome flipped = run_faulty(tiny_config(other.path()), "flip_weight:step=13,parameter=head.weight,bit=21");
  EXPECT_THAT(flipped.log, HasSubstr("at step 13, parameter=head.weight"));
  EXPECT_NE(model_of(whole.run.folder, 13), model_of(flipped.run.folder, 13));
}

TEST(FaultyRun, ASpikeIsNamedAndNothingElseUnderWarn) {
  const ScratchFolder one, other;
  const TinyOutcome off = run_faulty(watching(one.path(), config::SpikeAction::Off), "spike:step=6");
  const TinyOutcome warned = run_faulty(watching(other.path(), config::SpikeAction::Warn), "spike:step=6");
  EXPECT_THAT(off.log, Not(HasSubstr("event spike")));
  EXPECT_THAT(warned.log, HasSubstr("event spike: step=6, loss="));
  EXPECT_THAT(warned.log, HasSubstr(", action=warn"));
  EXPECT_EQ(model_of(off.run.folder, 9), model_of(warned.run.folder, 9));
}

TEST(FaultyRun, ASpikeIsSkipped) {
  const ScratchFolder folder;
  const TinyOutcome outcome = run_faulty(watching(folder.path(), config::SpikeAction::Skip), "spike:step=7,steps=3");
  EXPECT_THAT(outcome.log, HasSubstr("event spike: step=7, loss="));
  EXPECT_THAT(outcome.log, HasSubstr("event spike: step=8, loss="));
  EXPECT_THAT(outcome.log, Not(HasSubstr("event spike: step=9")));  // the patience is over
  EXPECT_THAT(file_of(folder.path(), "events.jsonl"), HasSubstr("\"action\":\"skip\""));
  EXPECT_THAT(file_of(folder.path(), "events.jsonl"), HasSubstr("\"samples\":["));
}

TEST(FaultyRun, SpikesInARowBringTheLastGoodStateBack) {
  const ScratchFolder folder;
  const TinyOutcome outcome = run_faulty(watching(folder.path(), config::SpikeAction::Rollback), "spike:step=8,steps=2");
  EXPECT_THAT(outcome.log,
              HasSubstr("event rollback: step=9, state_of_step=6, left out: the batches of steps 7 to 9, patience=2"));
  EXPECT_EQ(model_of(outcome.run.folder, 9), model_of(outcome.run.folder, 6));
  EXPECT_NE(model_of(outcome.run.folder, 9), model_of(outcome.run.folder, 3));
  EXPECT_THAT(file_of(folder.path(), "events.jsonl"),
              HasSubstr("\"event\":\"rollback\",\"step\":9,\"rank\":0,\"state_of_step\":6,\"left_out_steps\":3"));
}

TEST(FaultyRun, AResumedRunLooksForSpikesAsOneThatWasNotInterrupted) {
  const ScratchFolder one, other;
  const std::string fault = "spike:step=5";
  const TinyOutcome whole = run_faulty(watching(one.path(), config::SpikeAction::Skip), fault);
  config::RunConfig config = watching(other.path(), config::SpikeAction::Skip);
  try {
    run_faulty(config, "exception:step=4");
  } catch (const Error&) {
  }
  config.loop.resume = true;
  const TinyOutcome resumed = run_faulty(config, fault);
  EXPECT_THAT(resumed.log, HasSubstr("event spike: step=5"));
  EXPECT_EQ(model_of(whole.run.folder, 9), model_of(resumed.run.folder, 9));
  EXPECT_THAT(file_of(other.path(), "events.jsonl"), HasSubstr("\"event\":\"resumed\",\"step\":3"));
}

TEST(FaultyRun, GradientsThatDifferTheSecondTimeNameTheRankThatMadeThem) {
  const ScratchFolder one, other;
  config::RunConfig config = tiny_config(one.path());
  const TinyOutcome whole = run_tiny(config, {});
  config.output.expdir = other.path().string();
  config.health.recheck_interval = 3;
  const TinyOutcome checked = run_tiny(config, {});
  EXPECT_EQ(model_of(whole.run.folder, 13), model_of(checked.run.folder, 13));
  std::string text;
  try {
    run_faulty(config, "wrong_gradient:step=6");
  } catch (const Error& error) {
    text = error.what();
  }
  EXPECT_THAT(text, HasSubstr("[train] this rank computes two gradients from the same numbers: host="));
  EXPECT_THAT(text, HasSubstr(", parameter="));
  EXPECT_THAT(text, HasSubstr("Take this host out of the job and have it tested"));
}

}  // namespace
}  // namespace welkin::train
