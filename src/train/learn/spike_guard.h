// SPDX-License-Identifier: Apache-2.0
// Spikes: a loss or gradient norm far above those of the last good steps, by their median and median absolute deviation, which
// a few outliers do not move. All values are tensors on the device, so a step does not wait for the host, and a checkpoint
// restores the window.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <vector>

#include "config/schema/health_config.h"
#include "train/optim/optimizer.h"

namespace welkin::train {

class SpikeGuard {
 public:
  SpikeGuard(const config::HealthConfig& config, c10::Device device);

  // () float32; 1 if `loss` or `norm`, (), is NaN or more than spike_factor robust standard deviations above the median. A
  // deviation counts as at least a hundredth of the median. 0 until a quarter of the window is known. Under `skip` a value
  // after spike_patience spikes in a row is no spike but a new level: the window begins anew.
  at::Tensor judge(const at::Tensor& loss, const at::Tensor& norm);
  // True if the update of a spike is left out.
  bool skips() const { return config_.on_spike != config::SpikeAction::Warn; }
  // Called after the update, with judge()'s verdict as all ranks have it; `skipped` () float32, 1: there was no update.
  void add(const at::Tensor& loss, const at::Tensor& norm, const at::Tensor& spike, const at::Tensor& skipped);

  int64_t in_a_row() const;  // spikes up to the latest step; a checkpoint restores it; waits for the device
  void forget_row();

  // The rate of a step; lower for spike_lr_steps updates after a skipped spike.
  at::Tensor lowered(const at::Tensor& rate) const;

  std::vector<NamedState> states();

 private:
  at::Tensor limits() const;  // (2) of loss and norm
  at::Tensor middle_of(const at::Tensor& rows) const;

  config::HealthConfig config_;
  at::Tensor window_;    // (2, spike_window) float64: losses and norms of good steps, NaN where there are none yet
  at::Tensor count_;     // () int64, good steps
  at::Tensor in_a_row_;  // () int64, spikes
  at::Tensor lowered_;   // () int64, updates still to be made with the lower rate
};

}  // namespace welkin::train
