// SPDX-License-Identifier: Apache-2.0
// torch's own record of a GPU's memory, for ops/device_memory.h.
#include <torch/csrc/cuda/memory_snapshot.h>

#include "ops/device_memory.h"

namespace welkin::ops {
namespace {

void begin_history(size_t max_events) {
  torch::cuda::_record_memory_history(std::string("all"), std::string("all"), "all", max_events);
}

const bool kRegistered = [] {
  device_memory_history() = {.begin = &begin_history, .snapshot = &torch::cuda::_memory_snapshot_pickled};
  return true;
}();

}  // namespace
}  // namespace welkin::ops
