// SPDX-License-Identifier: Apache-2.0
// `micro_batch_size: auto`: the largest divisor of a rank's batch whose forward and backward pass fit into memory. Steps of one
// and of two samples give the memory per sample; a step of the size that this suggests is tried, under the limit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/step/setup.h"

namespace welkin::train {

struct MicroBatchChoice {
  int64_t samples = 0;
  std::string note;  // for the log
};

// The memory within which a choice has to stay.
struct MemoryRoom {
  int64_t bytes = 0;
  std::string source;  // "memory_limit_gib"
};

// `step_peak(samples)`: the peak memory of a step with such forward passes; nothing if it does not fit.
struct MicroBatchQuestion {
  int64_t local_batch = 1;
  int64_t buffer_bytes = 0;  // of a loader, for each sample of a forward pass
  MemoryRoom room{};
  bool is_tried = true;  // a step of the chosen size
  std::function<std::optional<int64_t>(int64_t)> step_peak{};
  std::function<void(std::vector<double>&)> agree{};  // on the largest of all ranks
};

// ConfigError if not even one sample fits.
MicroBatchChoice choose_micro_batch(const MicroBatchQuestion& question);

// The room on the device: memory_limit_gib, else the memory of a GPU, else nine tenths of the machine's free memory, shared by
// its `processes`. ConfigError if none of these is known.
MemoryRoom memory_room(c10::Device device, int64_t processes);

// Measures on set-ups of its own (probe_steps.h), before a loader is made. Every rank calls it, and all choose the same.
// `processes` counts the run's processes on this machine.
MicroBatchChoice choose_micro_batch(const Layout& layout, const SetupSource& source, int64_t processes);

}  // namespace welkin::train
