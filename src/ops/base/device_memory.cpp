// SPDX-License-Identifier: Apache-2.0
#include "ops/base/device_memory.h"

namespace welkin::ops {

// Filled in by the initialisers of a library, before main's context exists.
DeviceMemoryHistory& device_memory_history() {
  static DeviceMemoryHistory history;
  return history;
}

LimitDeviceMemory& limit_device_memory() {
  static LimitDeviceMemory limit = nullptr;
  return limit;
}

}  // namespace welkin::ops
