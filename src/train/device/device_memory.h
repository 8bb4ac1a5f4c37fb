// SPDX-License-Identifier: Apache-2.0
// How much memory is in use where a run computes, for the lines that the tutorials' model-parallel programs log, and what to say
// where a GPU has no more.
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

// Asks the runtime of the device itself, which counts devices as torch does. The management library (NVML) counts them as they
// are built in: under CUDA_VISIBLE_DEVICES=3,2,1,0 its device 0 is another one.
int64_t gpu_bytes_in_use(c10::DeviceIndex index);

// GB (2^30 bytes), unrounded: of the GPU that is `device`, or the resident memory of this process where that is a CPU.
double memory_in_use_gb(c10::Device device, const DeviceMemory& gpu = gpu_bytes_in_use);

// What torch's allocator of a GPU says, in bytes.
struct DeviceMemoryState {
  int64_t allocated = 0;  // by tensors of this process
  int64_t cached = 0;     // kept by this process for later tensors
  int64_t free = 0;       // of the GPU, that nobody has
};
DeviceMemoryState device_memory_state(c10::DeviceIndex index);

// The most that tensors of this process took on a GPU since reset_peak_memory(), in bytes.
int64_t max_memory_allocated(c10::DeviceIndex index);
void reset_peak_memory(c10::DeviceIndex index);
// The same for any device; of a CPU where tensors are counted (count_cpu_memory()).
int64_t max_memory_allocated(c10::Device device);
void reset_peak_memory(c10::Device device);

// Gives memory that this process keeps for later tensors back to a GPU, for another process; nothing on a CPU.
void empty_cache(c10::Device device);

// Bytes of tensors on `device`; on a CPU as cpu_memory_allocated() counts them.
int64_t memory_allocated(c10::Device device);

// `memory_limit_gib` for a run on this device: what limit_cpu_memory() does on a CPU. ConfigError on a GPU without
// libwelkin_cuda.so. Process-wide. Before the first tensor there.
void limit_memory(c10::Device device, double limit_gib);
double memory_limit_gib(c10::Device device);  // 0: none

// What torch's message says of the request that failed ("Tried to allocate 20.00 MiB", "you tried to allocate 64 bytes"); 0 where
// it says nothing.
int64_t requested_bytes(std::string_view message);

// Whether an error of torch says that a GPU has no more memory: that of its allocator, the runtime's, which comes where something
// beside tensors was to be had (a stream's stack, a recording), or a library's, whose handles and workspaces are its own.
bool is_device_out_of_memory(const c10::Error& error);

// The error of torch's allocator as ours. The limit is `limit_bytes`, or what this process could have where that is less (0: no
// limit is set).
MemoryError device_memory_error(std::string_view message, const DeviceMemoryState& state, int64_t limit_bytes);

std::string scaffolding_memory_line(c10::Device device);   // after the model is made
std::string forward_pass_memory_line(c10::Device device);  // after the second forward pass of an epoch

}  // namespace welkin::train
