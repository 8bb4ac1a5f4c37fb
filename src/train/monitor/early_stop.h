// SPDX-License-Identifier: Apache-2.0
// Early stopping: a run ends when a metric of its validation has not become smaller for `patience` epochs. Checkpoints keep its
// count, so that a resumed run ends at the same step as an uninterrupted one.
#pragma once

#include <cstdint>
#include <string>

#include "config/schema/early_stopping.h"
#include "train/checkpoint/format/checkpoint_index.h"

namespace welkin::train {

class EarlyStop {
 public:
  // `state` outlives it. It begins anew if the state is of another metric.
  EarlyStop(const config::EarlyStopping& rule, std::string metric, StoppingCount& state);

  // Called after each validation; a value that is not finite is no improvement.
  void add(double value, int64_t step);
  bool should_stop() const { return state_.waited >= rule_.patience; }
  // The reason: "val_loss has not improved in 5 validations: best 0.25 at step 40".
  std::string reason() const;

 private:
  config::EarlyStopping rule_;
  StoppingCount& state_;
};

}  // namespace welkin::train
