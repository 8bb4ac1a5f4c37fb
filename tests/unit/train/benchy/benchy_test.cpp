// SPDX-License-Identifier: Apache-2.0
#include "train/benchy/benchy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "scratch_folder.h"

namespace welkin::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

BenchyConfig short_config() {
  BenchyConfig config;
  config.report_freq = 2;
  config.sections.fill({.run_benchmark = true, .nbatches = 3, .ntrials = 2, .nwarmup = 1});
  return config;
}

// Steps of so many seconds each.
void run_trial(Benchy& benchy, const BenchyTrial& trial, double seconds) {
  benchy.start(trial);
  double now = 100;
  while (!benchy.tick(now)) now += seconds;
}

TEST(Benchy, PrintsItsLinesAndKeepsTheTrialsAlone) {
  std::vector<std::string> lines;
  Benchy benchy(short_config(), /*num_ranks=*/2, /*samples_per_step=*/8, [&](const std::string& line) { lines.push_back(line); });
  const auto trials = benchy.trials(BenchyKind::Io);
  ASSERT_EQ(trials.size(), 3U);
  run_trial(benchy, trials[0], 0.5);
  EXPECT_THAT(lines, ElementsAre("BENCHY::IO_WARMUP_0::Iteration Throughput: 16.0",
                                 "BENCHY::IO_WARMUP_0::Average Iteration Throughput: 16.0",
                                 "BENCHY::IO_WARMUP_0::Trial Throughput: 16.0"));
  run_trial(benchy, trials[1], 1);
  run_trial(benchy, trials[2], 2);
  EXPECT_EQ(lines.back(), "BENCHY::IO_1::Trial Throughput: 4.0");
  for (const BenchyKind kind : {BenchyKind::Synthetic, BenchyKind::Full}) {
    for (const BenchyTrial& trial : benchy.trials(kind)) run_trial(benchy, trial, 1);
  }
  lines.clear();
  const auto parsed = nlohmann::json::parse(benchy.finish());
  EXPECT_THAT(lines, ElementsAre("BENCHY::SUMMARY::IO average trial throughput: 6.000 +/- 2.000",
                                 "BENCHY::SUMMARY:: SYNTHETIC average trial throughput: 8.000 +/- 0.000",
                                 "BENCHY::SUMMARY::FULL average trial throughput: 8.000 +/- 0.000"));
  EXPECT_EQ(parsed["nranks"], 2);
  EXPECT_EQ(parsed["IO"]["rates"], nlohmann::json({{8.0, 8.0, 8.0}, {4.0, 4.0, 4.0}}));
  EXPECT_EQ(parsed["IO"]["trial_throughput"], nlohmann::json({8.0, 4.0}));
  EXPECT_EQ(parsed["IO"]["trial_time"], nlohmann::json({3.0, 6.0}));
  EXPECT_EQ(parsed["FULL"]["avg_iter_throughput"], nlohmann::json({8.0, 8.0}));
  EXPECT_EQ(parsed.size(), 4U);
}

TEST(Benchy, StartsTheProfilerWhereItsModeSays) {
  const auto profiles = [](const std::string& mode, bool leads) {
    BenchyConfig config;
    config.profiler_mode = mode;
    return Benchy(config, 2, 1, [](const std::string&) {}).profiles(leads);
  };
  EXPECT_TRUE(profiles("single", true));
  EXPECT_FALSE(profiles("single", false));
  EXPECT_TRUE(profiles("all", false));
  EXPECT_FALSE(profiles("none", true));
}

TEST(Benchy, SectionsThatAreOffHaveNoTrials) {
  BenchyConfig config = short_config();
  config.sections[0].run_benchmark = false;
  std::vector<std::string> lines;
  const Benchy benchy(config, 1, 1, [&](const std::string& line) { lines.push_back(line); });
  EXPECT_TRUE(benchy.trials(BenchyKind::Io).empty());
  EXPECT_THAT(benchy.finish(), HasSubstr("\"IO\""));
  EXPECT_EQ(lines.size(), 2U);
}

class BenchyFile : public testing::Test {
 protected:
  BenchyConfig read(const std::string& text) {
    write_file_atomically(folder_ / "benchy.yaml", text);
    return read_benchy_config((folder_ / "benchy.yaml").string());
  }
  std::string refused(const std::string& text) {
    try {
      read(text);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "taken";
  }
  ScratchFolder folder_;
};

TEST_F(BenchyFile, ReplacesTheSectionsThatItHas) {
  const BenchyConfig config = read(
      "global: {report_freq: 5, exit_after_tests: True, profiler_mode: single, output_filename: benchy_output.json,\n"
      "  output_dir: './', use_distributed_barrier: False}\n"
      "synthetic: {run_benchmark: True, nbatches: 7, ntrials: 2, nwarmup: 0}\n");
  EXPECT_EQ(config.report_freq, 5);
  EXPECT_EQ(config.output_filename, "benchy_output.json");
  EXPECT_EQ(config.sections[1].nbatches, 7);
  EXPECT_EQ(config.sections[0].nbatches, 50);
  EXPECT_TRUE(read_benchy_config("").file.empty());
}

TEST_F(BenchyFile, IsRefusedWithLineAndReason) {
  EXPECT_THAT(refused("IO: {run_benchmark: True, nbatches: 7}\n"), HasSubstr("leaves out ntrials"));
  EXPECT_THAT(refused("IO: {run_benchmark: True, nbatches: 0, ntrials: 2, nwarmup: 0}\n"), HasSubstr("nbatches=0"));
  EXPECT_THAT(refused("IO: {run_benchmark: True, nbatches: x, ntrials: 2, nwarmup: 0}\n"),
              HasSubstr("nbatches is a whole number"));
  EXPECT_THAT(refused("io: {}\n"), HasSubstr("benchy has no such section: io. Choose one of: global, IO, synthetic, full"));
  EXPECT_THAT(refused("IO: {run_benchmark: True, nbatches: 1, ntrials: 2, nwarmup: 0, x: 1}\n"), HasSubstr("no such key: x"));
  EXPECT_THAT(refused("IO: 3\n"), HasSubstr("benchy.yaml:1: a section is a mapping"));
}

}  // namespace
}  // namespace welkin::train
