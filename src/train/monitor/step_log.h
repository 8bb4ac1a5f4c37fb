// SPDX-License-Identifier: Apache-2.0
// log_every_n_steps: a line about a step, with an estimate of the run's remaining time.
#pragma once

#include <cstdint>
#include <string>

#include "core/stopwatch.h"
#include "observe/log/meters.h"
#include "train/learn/lr_schedule.h"

namespace welkin::train {

class StepLog {
 public:
  // 0: never a line.
  explicit StepLog(int64_t interval) : interval_(interval) { since_line_.start(); }

  // Called after each step.
  void count(int64_t samples) {
    ++steps_;
    since_line_.add(static_cast<double>(samples));
  }
  bool is_due(int64_t iteration) const { return interval_ > 0 && iteration % interval_ == 0; }
  // "Step 20/130, epoch 2/7: loss=0.987654, lr=0.0005, 123 samples/s, 1:02 left". The time left is estimated from the steps of
  // this process so far, including all work between them.
  std::string line(int64_t iteration, int64_t epoch, const RunLength& length, double loss, double rate);

 private:
  int64_t interval_;
  int64_t steps_ = 0;
  Stopwatch watch_;
  observe::Throughput since_line_;
};

// The number of epochs of a run of this length: the last one may be cut short.
int64_t epochs_of(const RunLength& length);

}  // namespace welkin::train
