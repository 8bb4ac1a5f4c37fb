// SPDX-License-Identifier: Apache-2.0
// How much memory is in use on the device of a run, for the lines that the tutorials' model-parallel programs log, and the
// error text of a GPU without free memory.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "train/device/memory_limit.h"

namespace welkin::train {

// Bytes in use on the GPU of this index, all processes together.
using DeviceMemory = std::function<int64_t(c10::DeviceIndex)>;

// Asks the CUDA runtime, which counts devices as torch does. The management library (NVML) counts them in PCI order: under
// CUDA_VISIBLE_DEVICES=3,2,1,0 its device 0 is another one.
int64_t gpu_bytes_in_use(c10::DeviceIndex index);

// GB (2^30 bytes), unrounded: the memory in use on the GPU `device`, or the resident memory of this process if it is a CPU.
double memory_in_use_gb(c10::Device device, const DeviceMemory& gpu = gpu_bytes_in_use);

// Counts of torch's allocator on a GPU, in bytes.
struct DeviceMemoryState {
  int64_t allocated = 0;  // by tensors of this process
  int64_t cached = 0;     // kept by this process for later tensors
  int64_t free = 0;       // unused memory of the GPU
};
DeviceMemoryState device_memory_state(c10::DeviceIndex index);

// The most that tensors of this process took on a GPU since reset_peak_memory(), in bytes.
int64_t max_memory_allocated(c10::DeviceIndex index);
void reset_peak_memory(c10::DeviceIndex index);
// The same for any device; on a CPU only if tensors are counted (count_cpu_memory()).
int64_t max_memory_allocated(c10::Device device);
void reset_peak_memory(c10::Device device);

// Gives memory that this process keeps for later tensors back to a GPU, for another process; no effect on a CPU.
void empty_cache(c10::Device device);

// Bytes of tensors on `device`; on a CPU as cpu_memory_allocated() counts them.
int64_t memory_allocated(c10::Device device);

// Applies `memory_limit_gib` on this device; on a CPU it is limit_cpu_memory(). ConfigError on a GPU without libwelkin_cuda.so.
// Process-wide. Call it before the first tensor there.
void limit_memory(c10::Device device, double limit_gib);
double memory_limit_gib(c10::Device device);  // 0: none

// The size of the failed request in torch's message ("Tried to allocate 20.00 MiB", "you tried to allocate 64 bytes"); 0 if it
// has none.
int64_t requested_bytes(std::string_view message);

// True if an error of torch says that a GPU has no more memory. It may be an error of its allocator; of the runtime, for memory
// other than tensors (a stream's stack, a recording); or of a library, which allocates its own handles and workspaces.
bool is_device_out_of_memory(const c10::Error& error);

// The error of torch's allocator as ours. The limit is `limit_bytes`, or what this process could have if that is less (0: no
// limit is set).
MemoryError device_memory_error(std::string_view message, const DeviceMemoryState& state, int64_t limit_bytes);

std::string scaffolding_memory_line(c10::Device device);   // after the model is made
std::string forward_pass_memory_line(c10::Device device);  // after the second forward pass of an epoch

}  // namespace welkin::train
