// SPDX-License-Identifier: Apache-2.0
// The last good state of a run in the host's memory: this rank's weights, the optimizer's states, the average of weights and the
// loss scale. One copy is kept, so it takes as much memory as they do.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "train/step/setup.h"

namespace welkin::train {

class KeptState {
 public:
  // Keeps a copy. Every rank calls it at the same step.
  void keep(TrainSetup& setup, int64_t step);
  // Restores the copy and returns the step after which it was kept. Every rank calls it.
  int64_t restore(TrainSetup& setup) const;
  int64_t step() const { return step_; }

 private:
  std::vector<at::Tensor> copies_;
  int64_t step_ = 0;
};

}  // namespace welkin::train
