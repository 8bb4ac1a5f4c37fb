// SPDX-License-Identifier: Apache-2.0
// How much memory is in use where a run computes, for the lines that the tutorials' model-parallel programs log.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <string>

namespace welkin::train {

// Bytes in use on the GPU of this index, all processes together.
using DeviceMemory = std::function<int64_t(c10::DeviceIndex)>;

// Asks the runtime of the device itself, which counts devices as torch does. The management library (NVML) counts them as they
// are built in: under CUDA_VISIBLE_DEVICES=3,2,1,0 its device 0 is another one.
int64_t gpu_bytes_in_use(c10::DeviceIndex index);

// GB (2^30 bytes), unrounded: of the GPU that is `device`, or the resident memory of this process where that is a CPU.
double memory_in_use_gb(c10::Device device, const DeviceMemory& gpu = gpu_bytes_in_use);

std::string scaffolding_memory_line(c10::Device device);   // after the model is made
std::string forward_pass_memory_line(c10::Device device);  // after the second forward pass of an epoch

}  // namespace welkin::train
