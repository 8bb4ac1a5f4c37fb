// SPDX-License-Identifier: Apache-2.0
// Decides when a run has to save and end so that it finishes within its time limit.
#pragma once

#include <string>
#include <utility>

#include "core/stopwatch.h"

namespace welkin::train {

class TimeLimit {
 public:
  // `seconds_left` counts from now; `margin_s` of it are kept free. `source` names the origin of the limit, for the log.
  TimeLimit(double seconds_left, double margin_s, std::string source)
      : seconds_left_(seconds_left), margin_s_(margin_s), source_(std::move(source)) {}

  double seconds_left() const { return seconds_left_ - since_.seconds(); }
  // True if another step and one and a half times a checkpoint would reach into the margin. `step_s` and `save_s` are the
  // longest step and save so far, 0 if none was measured.
  bool is_due(double step_s, double save_s) const { return seconds_left() < step_s + kSaveFactor * save_s + margin_s_; }

  double margin_s() const { return margin_s_; }
  const std::string& source() const { return source_; }

  static constexpr double kSaveFactor = 1.5;  // a file system may be slower than it was

 private:
  Stopwatch since_;
  double seconds_left_, margin_s_;
  std::string source_;
};

}  // namespace welkin::train
