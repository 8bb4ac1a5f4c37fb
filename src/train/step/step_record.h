// SPDX-License-Identifier: Apache-2.0
// The results of one training step: tensors on the device, which the host reads later, and values that the host knows anyway.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "train/learn/gradients.h"
#include "train/optim/optimizer.h"

namespace welkin::train {

inline constexpr int64_t kNumRequests = 4;  // of StepRecord::requests

struct StepRecord {
  int64_t iteration = 0;        // of the run, from 1
  int64_t epoch = 0, step = 0;  // position of its samples, from 0
  int64_t num_samples = 0;
  std::vector<int64_t> samples;  // indices into the data set
  at::Tensor loss;               // () float32 mean over the step's samples
  at::Tensor rate;               // () learning rate of this step
  GradientStatus gradient;
  at::Tensor spike;  // () float32; 1: loss or gradient norm far above the last ones; undefined if on_spike is off
  // (4) float64: the number of ranks that want the run to stop, the sum of StepOptions::pending_notes, and the numbers of ranks
  // for which files_written() and others_wait() were true; undefined for a single process.
  at::Tensor requests;
};

// The epoch's mean loss, weighted by samples, in double on the device. Losses that are not finite are left out, and so are
// those of skipped spikes. Steps without an update are counted.
class EpochMeter {
 public:
  explicit EpochMeter(c10::Device device);

  void add(const StepRecord& record);
  void clear();
  double mean_loss() const;       // waits for the device
  int64_t skipped_steps() const;  // updates that were skipped; waits for the device
  std::vector<NamedState> states();

 private:
  at::Tensor loss_sum_;  // () float64
  at::Tensor weight_;    // () float64, samples
  at::Tensor skipped_;   // () float64, steps
};

}  // namespace welkin::train
