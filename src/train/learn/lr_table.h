// SPDX-License-Identifier: Apache-2.0
// A schedule on the device: all rates of the run, and the number of updates, which selects one. A skipped step does not advance
// it, unless the table counts iterations, as the tutorials do.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <vector>

#include "config/schema/choices.h"
#include "train/learn/lr_schedule.h"
#include "train/optim/optimizer.h"

namespace welkin::train {

class LrTable {
 public:
  LrTable(const LrSchedule& schedule, int64_t total_steps, c10::Device device,
          config::RateRule count = config::RateRule::Updates);

  // () rate of the next update, in the dtype that the optimizers take on this device.
  at::Tensor current() const;
  // Called after an update: `found_inf` () float32, 1 when it was skipped.
  void advance(const at::Tensor& found_inf);

  std::vector<NamedState> states() { return {{"updates", updates_}}; }

 private:
  at::Tensor rates_;    // (total_steps + 1): the last entry is logged after the last step
  at::Tensor updates_;  // () int64
  config::RateRule count_;
};

}  // namespace welkin::train
