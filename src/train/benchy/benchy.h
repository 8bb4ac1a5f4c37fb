// SPDX-License-Identifier: Apache-2.0
// benchy, the tutorials' measuring loader: its configuration, the trials of a run, the lines that it prints and the JSON that
// it writes. The caller passes the time in, in seconds, and does the measured work (train/run/benchy_run.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace welkin::train {

struct BenchySection {
  bool run_benchmark = true;
  int64_t nbatches = 50, ntrials = 3, nwarmup = 1;
};

enum class BenchyKind { Io, Synthetic, Full };

struct BenchyConfig {
  int64_t report_freq = 10;  // steps between two lines
  bool exit_after_tests = true;
  std::string profiler_mode = "single";  // single, all, none
  std::string output_filename = "benchy_result.json";
  std::string output_dir = ".";
  bool use_distributed_barrier = false;
  std::array<BenchySection, 3> sections{};  // by BenchyKind
  std::string file;                         // the file that was read; empty: the defaults
};

// Reads the file of BENCHY_CONFIG_FILE; returns the defaults if the path is empty. As in benchy, a section of the file replaces
// the whole section of the defaults. A missing key is a ConfigError, and so is an unknown one.
BenchyConfig read_benchy_config(const std::string& path);

struct BenchyTrial {
  BenchyKind kind = BenchyKind::Io;
  bool is_warmup = false;
  int64_t index = 0;  // among the trials, or warm-ups, of its kind
  int64_t nbatches = 0;

  std::string label() const;  // "IO_0", "FULL_WARMUP_2"
};

class Benchy {
 public:
  // `samples_per_step` counts the samples of all ranks. `say` gets a line for stdout.
  Benchy(BenchyConfig config, int64_t num_ranks, int64_t samples_per_step, std::function<void(const std::string&)> say);

  const BenchyConfig& config() const { return config_; }
  // Says the lines of the start: the file, and the profiling mode.
  void introduce() const;
  // Warm-ups and trials of a kind in their order; empty if the kind is not to run.
  std::vector<BenchyTrial> trials(BenchyKind kind) const;

  // True if profiler_mode starts NVIDIA's profiler in this process.
  bool profiles(bool is_main) const { return config_.profiler_mode == "all" || (is_main && config_.profiler_mode == "single"); }

  void start(const BenchyTrial& trial);
  // Called at the start of every batch of a trial, and once after its last. Each call but the first closes a step. True when
  // the trial is over.
  bool tick(double now);

  // Says the lines of the summary and returns the JSON.
  std::string finish() const;
  std::string output_path() const;

 private:
  struct Results {
    std::vector<std::vector<double>> rates;  // by trial, by step
    std::vector<double> avg_iter_throughput, trial_throughput, trial_time;
  };
  void close_trial(double now);
  void say_summary(BenchyKind kind, const char* prefix) const;

  BenchyConfig config_;
  int64_t num_ranks_;
  double samples_per_step_;
  std::function<void(const std::string&)> say_;
  std::array<Results, 3> results_;  // by BenchyKind; warm-ups leave nothing

  BenchyTrial trial_;
  std::vector<double> rates_;  // of the trial's steps so far
  bool is_running_ = false;
  double began_ = 0, last_ = 0;
};

}  // namespace welkin::train
