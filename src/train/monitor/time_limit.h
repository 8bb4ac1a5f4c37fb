// SPDX-License-Identifier: Apache-2.0
// When a run has to save and end so that its time limit finds it done.
#pragma once

#include <string>
#include <utility>

#include "core/stopwatch.h"

namespace welkin::train {

class TimeLimit {
 public:
  // `seconds_left` from now on, of which `margin_s` are kept free. `source`: who says so, for the log.
  TimeLimit(double seconds_left, double margin_s, std::string source)
      : seconds_left_(seconds_left), margin_s_(margin_s), source_(std::move(source)) {}

  double seconds_left() const { return seconds_left_ - since_.seconds(); }
  // Whether another step and one and a half times a checkpoint would reach into the margin. `step_s` and `save_s`: what each has
  // taken at most, 0 where none was measured.
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
