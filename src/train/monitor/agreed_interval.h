// SPDX-License-Identifier: Apache-2.0
// The interval between checkpoints that a run chooses itself, equal on all ranks: the first rank measures, chooses and tells.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/stopwatch.h"
#include "parallel/comm/group.h"
#include "train/monitor/interval_choice.h"

namespace welkin::train {

class AgreedInterval {
 public:
  struct Options {
    double mtbf_s = 0;           // of the whole job
    std::filesystem::path file;  // in which the first rank keeps its measurements
    bool resumed = false;        // the run goes on: the measurements in the file count
    std::function<void(const std::string&)> say;
  };

  // Every rank calls it.
  AgreedInterval(const parallel::Group& world, Options options);

  // Called after each step, before its state may be saved.
  void step_done(int64_t step);
  // Called after the checkpoint of that step, with the time that it has held training and the time that the latest whole one
  // took. Every rank calls it.
  void saved(int64_t step, double held_s, double written_s);

  int64_t steps() const { return steps_; }
  double goodput() const { return choice_.goodput(); }  // of the first rank; 0: not known yet

 private:
  bool is_first() const { return world_.group_rank() == 0; }
  void agree();

  parallel::Group world_;
  Options options_;
  IntervalChoice choice_;
  Stopwatch since_mark_;
  std::optional<int64_t> mark_;  // the step at which the stopwatch was started
  int64_t steps_ = IntervalChoice::kFirstSteps;
};

}  // namespace welkin::train
