// SPDX-License-Identifier: Apache-2.0
// Functions of torch's GPU allocator beyond its device-neutral interface: a record of its blocks, and a limit. They are in
// torch's CUDA library, which only libwelkin_cuda.so links.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <string>

namespace welkin::ops {

struct DeviceMemoryHistory {
  void (*begin)(size_t max_events) = nullptr;
  std::string (*snapshot)() = nullptr;  // a pickle of torch.cuda.memory._snapshot()
};

// Limits the GPU memory of this process's tensors to a share in (0, 1] of the whole memory.
using LimitDeviceMemory = void (*)(double share, c10::DeviceIndex index);

}  // namespace welkin::ops
