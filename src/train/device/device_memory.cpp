// SPDX-License-Identifier: Apache-2.0
#include "train/device/device_memory.h"

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>

#include <algorithm>
#include <atomic>
#include <sstream>

#include "config/yaml/yaml_scalar.h"
#include "core/error.h"
#include "core/process/host.h"
#include "core/text.h"
#include "ops/device/device_ops.h"

namespace welkin::train {
namespace {

constexpr double kGib = int64_t{1} << 30;

std::atomic<double> gpu_limit_gib = 0;  // what limit_memory() set last

}  // namespace

int64_t gpu_bytes_in_use(c10::DeviceIndex index) {
  const auto [free, total] = at::getDeviceAllocator(at::kCUDA)->getMemoryInfo(index);
  return static_cast<int64_t>(total - free);
}

DeviceMemoryState device_memory_state(c10::DeviceIndex index) {
  at::DeviceAllocator& allocator = *at::getDeviceAllocator(at::kCUDA);
  constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto stats = allocator.getDeviceStats(index);
  const int64_t allocated = stats.allocated_bytes.at(kAll).current, reserved = stats.reserved_bytes.at(kAll).current;
  return {
      .allocated = allocated, .cached = reserved - allocated, .free = static_cast<int64_t>(allocator.getMemoryInfo(index).first)};
}

int64_t max_memory_allocated(c10::DeviceIndex index) {
  constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return at::getDeviceAllocator(at::kCUDA)->getDeviceStats(index).allocated_bytes.at(kAll).peak;
}

void reset_peak_memory(c10::DeviceIndex index) { at::getDeviceAllocator(at::kCUDA)->resetPeakStats(index); }

int64_t max_memory_allocated(c10::Device device) {
  return device.is_cpu() ? max_cpu_memory_allocated() : max_memory_allocated(device.index());
}

void reset_peak_memory(c10::Device device) { device.is_cpu() ? reset_max_cpu_memory() : reset_peak_memory(device.index()); }

void empty_cache(c10::Device device) {
  if (device.is_cuda()) at::getDeviceAllocator(at::kCUDA)->emptyCache();
}

int64_t memory_allocated(c10::Device device) {
  return device.is_cpu() ? cpu_memory_allocated() : device_memory_state(device.index()).allocated;
}

void limit_memory(c10::Device device, double limit_gib) {
  const int64_t limit_bytes = bytes_of_limit(limit_gib);
  limit_cpu_memory(device.is_cpu() ? limit_bytes : 0);
  if (device.is_cpu()) return;
  if (ops::device_ops().limit_memory == nullptr) {
    if (limit_bytes == 0) return;
    throw ConfigError("memory", cat("limiting GPU memory needs libwelkin_cuda.so: memory_limit_gib=", limit_gib),
                      "Build it with ./quickstart.sh --cuda --skip-train, or leave --memory_limit_gib out");
  }
  at::globalContext().lazyInitDevice(at::kCUDA);  // before it there is no allocator
  const auto total = static_cast<double>(at::getDeviceAllocator(at::kCUDA)->getMemoryInfo(device.index()).second);
  const double share = limit_bytes == 0 ? 1.0 : std::min(1.0, static_cast<double>(limit_bytes) / total);
  ops::device_ops().limit_memory(share, device.index());
  gpu_limit_gib = limit_gib;
}

double memory_limit_gib(c10::Device device) {
  return device.is_cpu() ? static_cast<double>(cpu_memory_limit()) / kGib : gpu_limit_gib.load();
}

int64_t requested_bytes(std::string_view message) {
  constexpr std::string_view kBefore = "ried to allocate ";
  const size_t begin = message.find(kBefore);
  if (begin == std::string_view::npos) return 0;
  std::istringstream words{std::string(message.substr(begin + kBefore.size()))};
  double number = 0;
  std::string unit;
  if (!(words >> number >> unit)) return 0;
  for (const auto& [name, bytes] : {std::pair("GiB", kGib), std::pair("MiB", kGib / 1024), std::pair("KiB", 1024.0)}) {
    if (unit.starts_with(name)) return static_cast<int64_t>(number * bytes);
  }
  return unit.starts_with("bytes") ? static_cast<int64_t>(number) : 0;
}

bool is_device_out_of_memory(const c10::Error& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  constexpr int kMemoryAllocation = 2;  // cudaErrorMemoryAllocation
  const auto* const of_runtime = dynamic_cast<const c10::AcceleratorError*>(&error);
  if (of_runtime != nullptr && of_runtime->get_error_code() == kMemoryAllocation) return true;
  const std::string_view message = error.what_without_backtrace();
  constexpr std::string_view kOfLibraries[] = {"CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED",
                                               "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"};
  return std::ranges::any_of(kOfLibraries, [&](std::string_view name) { return message.find(name) != std::string_view::npos; });
}

MemoryError device_memory_error(std::string_view message, const DeviceMemoryState& state, int64_t limit_bytes) {
  const int64_t possible = state.allocated + state.cached + state.free;
  const int64_t limit = limit_bytes > 0 ? std::min(limit_bytes, possible) : possible;
  return {{.requested = requested_bytes(message), .used = state.allocated, .limit = limit}, {}, "Take smaller batches"};
}

double memory_in_use_gb(c10::Device device, const DeviceMemory& gpu) {
  return (device.is_cpu() ? static_cast<double>(resident_bytes()) : static_cast<double>(gpu(device.index()))) / kGib;
}

std::string scaffolding_memory_line(c10::Device device) {
  return cat("Scaffolding memory high watermark: ", config::float_text(memory_in_use_gb(device)), " GB.");
}

std::string forward_pass_memory_line(c10::Device device) {
  return cat(" Memory usage after forward pass: ", config::float_text(memory_in_use_gb(device)), " GB.");
}

}  // namespace welkin::train
