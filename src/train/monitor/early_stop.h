// SPDX-License-Identifier: Apache-2.0
// Early stopping: a run ends when a metric of its validation has not become smaller for `patience` epochs. What it counts is a
// value that checkpoints keep, so that a resumed run ends where an uninterrupted one does.
#pragma once

#include <cstdint>
#include <string>

#include "config/schema/early_stopping.h"
#include "train/checkpoint/format/checkpoint_index.h"

namespace welkin::train {

class EarlyStop {
 public:
  // `state` outlives it, and begins anew where it is another metric's.
  EarlyStop(const config::EarlyStopping& rule, std::string metric, StoppingCount& state);

  // After each validation; a value that is not finite is no improvement.
  void add(double value, int64_t step);
  bool should_stop() const { return state_.waited >= rule_.patience; }
  // Why: "val_loss has not improved in 5 validations: best 0.25 at step 40".
  std::string reason() const;

 private:
  config::EarlyStopping rule_;
  StoppingCount& state_;
};

}  // namespace welkin::train
