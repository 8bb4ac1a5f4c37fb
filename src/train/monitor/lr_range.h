// SPDX-License-Identifier: Apache-2.0
// The learning rate range test (Smith 2017, arXiv:1506.01186) as arithmetic, with the conventions of fastai's lr_find: the rate
// rises exponentially from step to step, the loss is smoothed, and the test ends when it has become four times the smallest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/learn/lr_schedule.h"

namespace welkin::train {

struct LrRangeOptions {
  double low = 1e-7, high = 10;  // rates of the first and of the last step
  int64_t steps = 100;
};

// "low=1e-7,high=10,steps=100", each part optional. ConfigError for another form or a range that does not rise.
LrRangeOptions parse_lr_range(const std::string& text);

LrSchedulePtr rising_schedule(const LrRangeOptions& options);

struct LrPoint {
  double rate = 0, loss = 0, smoothed = 0;
};

struct LrSuggestion {
  double steepest = 0;  // the rate at which the smoothed loss falls fastest over the logarithm of the rate
  double minimum = 0;   // the rate of the smallest smoothed loss; a tenth of it is the cautious choice
};

class LrRange {
 public:
  // Adds the next step's rate and loss. False when the test is over: the loss has grown too much, or is not finite.
  bool add(double rate, double loss);

  const std::vector<LrPoint>& points() const { return points_; }
  // Skips the first tenth and the last five steps, if there are enough. Nothing if the loss never falls.
  std::optional<LrSuggestion> suggestion() const;

  std::string csv() const;  // step, lr, loss, smoothed_loss
  std::string svg() const;

 private:
  std::vector<LrPoint> points_;
  double average_ = 0, best_ = 0;
};

}  // namespace welkin::train
