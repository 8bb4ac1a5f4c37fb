// SPDX-License-Identifier: Apache-2.0
// torch's own record of a GPU's memory and its limit, for ops/device/device_memory.h.
#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/csrc/cuda/memory_snapshot.h>

#include "ops/device/device_ops.h"

namespace welkin::ops {
namespace {

void begin_history(size_t max_events) {
  torch::cuda::_record_memory_history(std::string("all"), std::string("all"), "all", max_events);
}

// A share of 1 lifts an earlier limit, and sets none.
void limit_share(double share, c10::DeviceIndex index) {
  if (share == c10::cuda::CUDACachingAllocator::getMemoryFraction(index)) return;
  c10::cuda::CUDACachingAllocator::setMemoryFraction(share, index);
}

const bool kRegistered = [] {
  device_ops().limit_memory = &limit_share;
  device_ops().memory_history = {.begin = &begin_history, .snapshot = &torch::cuda::_memory_snapshot_pickled};
  return true;
}();

}  // namespace
}  // namespace welkin::ops
