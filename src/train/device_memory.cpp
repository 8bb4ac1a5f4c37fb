// SPDX-License-Identifier: Apache-2.0
#include "train/device_memory.h"

#include <ATen/DeviceAccelerator.h>

#include "config/yaml_scalar.h"
#include "core/host.h"
#include "core/text.h"

namespace welkin::train {

int64_t gpu_bytes_in_use(c10::DeviceIndex index) {
  const auto [free, total] = at::getDeviceAllocator(at::kCUDA)->getMemoryInfo(index);
  return static_cast<int64_t>(total - free);
}

double memory_in_use_gb(c10::Device device, const DeviceMemory& gpu) {
  constexpr double kGb = int64_t{1} << 30;
  return (device.is_cpu() ? static_cast<double>(resident_bytes()) : static_cast<double>(gpu(device.index()))) / kGb;
}

std::string scaffolding_memory_line(c10::Device device) {
  return cat("Scaffolding memory high watermark: ", config::float_text(memory_in_use_gb(device)), " GB.");
}

std::string forward_pass_memory_line(c10::Device device) {
  return cat(" Memory usage after forward pass: ", config::float_text(memory_in_use_gb(device)), " GB.");
}

}  // namespace welkin::train
