// SPDX-License-Identifier: Apache-2.0
// The record that torch's allocator of a GPU keeps of its blocks. It is in torch's CUDA library, which only libwelkin_cuda.so
// links.
#pragma once

#include <cstddef>
#include <string>

namespace welkin::ops {

struct DeviceMemoryHistory {
  void (*begin)(size_t max_events) = nullptr;
  std::string (*snapshot)() = nullptr;  // a pickle of torch.cuda.memory._snapshot()
};

// libwelkin_cuda.so registers its functions while it is loaded; all null before.
DeviceMemoryHistory& device_memory_history();

}  // namespace welkin::ops
