// SPDX-License-Identifier: Apache-2.0
// The interval between checkpoints that a run chooses itself (checkpoint_interval: auto), from what it measures and how often
// its nodes fail. It knows no ranks: the first one measures and tells the others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/fault/failure_model.h"

namespace welkin::train {

// In seconds; 0: not measured.
struct MeasuredTimes {
  double step_s = 0;     // a step with its share of validations
  double held_s = 0;     // by which a checkpoint lengthens training
  double written_s = 0;  // from its beginning until it is published
  double restart_s = 0;  // from the start of a process to the end of its first step
};

// For a run that goes on in another process. write_times() throws DataError; read_times() gives nothing where there is no such
// file, or none that can be used.
void write_times(const std::filesystem::path& file, const MeasuredTimes& times);
std::optional<MeasuredTimes> read_times(const std::filesystem::path& file);

class IntervalChoice {
 public:
  // `mtbf_s`: of the whole job. `known`: what a run that goes on has measured before.
  explicit IntervalChoice(double mtbf_s, const MeasuredTimes& known = {}) : mtbf_s_(mtbf_s), times_(known) {}

  // Means in which what is measured later counts more; what is 0 there is left out.
  void add(const MeasuredTimes& measured);

  // By Daly's formula, at least 1, and no less than a checkpoint takes to be written; kFirstSteps until one was saved.
  int64_t steps() const;
  double goodput() const;  // that is to be expected; 0 until then
  const MeasuredTimes& times() const { return times_; }
  // A line for the log; empty until then, and while the interval is about that of the line before.
  std::string news();

  static constexpr int64_t kFirstSteps = 10;

 private:
  bool is_known() const { return times_.step_s > 0 && times_.held_s > 0; }
  FailureCosts costs() const;

  double mtbf_s_;
  MeasuredTimes times_;
  int64_t told_steps_ = 0;
};

}  // namespace welkin::train
