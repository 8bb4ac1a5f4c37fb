// SPDX-License-Identifier: Apache-2.0
// What torch's allocator of a GPU can do beyond its device-neutral interface: a record of its blocks, and a cap. It is in torch's
// CUDA library, which only libwelkin_cuda.so links.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <string>

namespace welkin::ops {

struct DeviceMemoryHistory {
  void (*begin)(size_t max_events) = nullptr;
  std::string (*snapshot)() = nullptr;  // a pickle of torch.cuda.memory._snapshot()
};

// Caps what this process's tensors take of a GPU's memory, as a share in (0, 1] of all that it has.
using LimitDeviceMemory = void (*)(double share, c10::DeviceIndex index);

}  // namespace welkin::ops
