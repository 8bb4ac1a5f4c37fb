// SPDX-License-Identifier: Apache-2.0
// The interval between checkpoints that a run chooses itself (checkpoint_interval: auto), from its measurements and the failure
// rate of its nodes. It knows no ranks: the first rank measures and tells the others.
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
  double written_s = 0;  // from the beginning of a checkpoint to its publication
  double restart_s = 0;  // from the start of a process to the end of its first step
};

// For a run that goes on in another process. write_times() throws DataError; read_times() returns nothing if there is no such
// file, or the file cannot be used.
void write_times(const std::filesystem::path& file, const MeasuredTimes& times);
std::optional<MeasuredTimes> read_times(const std::filesystem::path& file);

class IntervalChoice {
 public:
  // `mtbf_s` is that of the whole job. `known` has the measurements from before a run was resumed.
  explicit IntervalChoice(double mtbf_s, const MeasuredTimes& known = {}) : mtbf_s_(mtbf_s), times_(known) {}

  // Updates means in which later measurements count more; a 0 is left out.
  void add(const MeasuredTimes& measured);

  // The interval by Daly's formula, at least 1 and the time to write a checkpoint; kFirstSteps until one was saved.
  int64_t steps() const;
  double goodput() const;  // expected goodput; 0 until a checkpoint was saved
  const MeasuredTimes& times() const { return times_; }
  // A line for the log; empty until a checkpoint was saved, and while the interval is about that of the line before.
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
