// SPDX-License-Identifier: Apache-2.0
// The state of a run: the values in a checkpoint besides the tensors of model and optimizer.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "train/checkpoint/format/checkpoint_index.h"
#include "train/learn/lr_schedule.h"
#include "train/monitor/early_stop.h"
#include "train/run/field_picture.h"

namespace welkin::train {

struct RunState {
  RunLength length;
  RunPosition position;
  bool resumed = false;                   // from a checkpoint
  bool is_whole = true;                   // false from a step's update until the position counts it
  at::Tensor last_lr;                     // () learning rate of the last step
  std::optional<double> validation_loss;  // of the present weights
  std::optional<double> best_value;       // the smallest value of best_metric so far
  std::optional<int64_t> best_step;       // and the step that had it
  StoppingCount early_stop;
  bool stops_early = false;             // early stopping has ended the run
  std::optional<ForecastPair> picture;  // the prediction of a sample of the epoch's last step

  int64_t steps_so_far() const { return position.epoch * length.steps_per_epoch + position.step_in_epoch; }  // by position
  bool all_steps_done() const { return position.iteration >= length.total_steps; }
  bool ends_full_epoch() const { return position.step_in_epoch == length.steps_per_epoch; }
  // True from the last step of an epoch until its end is done: a checkpoint in between continues there. A run that ends within
  // an epoch keeps this position for a run that goes on further; a validation loss then shows that the end is done.
  bool epoch_is_complete() const {
    return ends_full_epoch() || (all_steps_done() && position.step_in_epoch > 0 && !validation_loss);
  }
  bool is_finished() const { return (all_steps_done() || stops_early) && !epoch_is_complete(); }
  bool is_last_step_of_epoch() const {
    return position.step_in_epoch + 1 == length.steps_per_epoch || position.iteration + 1 == length.total_steps;
  }
};

}  // namespace welkin::train
