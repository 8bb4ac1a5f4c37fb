// SPDX-License-Identifier: Apache-2.0
// Steps of a set-up that is made for measuring and then dropped, on made-up batches of the configured size. They change nothing
// in the run's own weights, states, counters and data. Memory is counted from the first of them on.
#pragma once

#include <cstdint>
#include <memory>

#include "config/schema/run_config.h"
#include "train/step/setup.h"
#include "train/step/step.h"

namespace welkin::train {

class ProbeSteps {
 public:
  // `layout` and `source` outlive it. Every rank calls it, and run(). MemoryError if a step does not fit.
  ProbeSteps(const Layout& layout, const SetupSource& source, const RunLength& length, const SiteInstaller& install);
  ProbeSteps(const ProbeSteps&) = delete;
  ProbeSteps& operator=(const ProbeSteps&) = delete;

  // One optimizer step with all its micro-batches. Waits for the device.
  void run();
  TrainSetup& setup() { return *setup_; }
  // Bytes of the made-up batch if a run's own batch lies in the buffers of its loader: on a CPU.
  int64_t extra_bytes() const { return extra_bytes_; }

 private:
  data::Batch batch_of(int64_t micro) const;

  const config::RunConfig& config_;
  c10::Device device_;
  std::unique_ptr<TrainSetup> setup_;
  std::unique_ptr<EagerStep> step_;
  at::Tensor input_, target_;  // of the largest micro-batch
  int64_t local_ = 0, micro_ = 0;
  int64_t extra_bytes_ = 0;
};

// Waits for all work of the device; nothing on a CPU.
void settle(c10::Device device);

}  // namespace welkin::train
