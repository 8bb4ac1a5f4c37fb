// SPDX-License-Identifier: Apache-2.0
#include "train/device/device.h"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include "core/error.h"
#include "core/text.h"

namespace welkin::train {
namespace {

// The hooks exist once libtorch_cuda is loaded (the launcher loads it if there is a device node).
bool has_gpu() { return at::globalContext().hasCUDA() && at::detail::getCUDAHooks().deviceCount() > 0; }

}  // namespace

config::RunConfig for_device(config::RunConfig config, c10::Device device) {
  if (device.is_cpu() && config.data.resident == config::Residence::Device) config.data.resident = config::Residence::Host;
  return config;
}

c10::DeviceIndex gpu_of_rank(int64_t local_rank, int64_t local_size, int64_t num_gpus) {
  const bool sees_one = num_gpus == 1;  // a launcher that binds GPUs shows each rank its own
  if (local_size > num_gpus && !sees_one) {
    throw ConfigError("device", cat("more ranks than GPUs on this node: ranks=", local_size, ", GPUs=", num_gpus),
                      "Start as many ranks per node as it has GPUs, or take --device cpu");
  }
  return static_cast<c10::DeviceIndex>(local_rank % num_gpus);
}

config::DeviceChoice device_named(const std::string& name) {
  if (const auto choice = config::choice_named<config::DeviceChoice>(name)) return *choice;
  throw ConfigError("device", cat("there is no such device: device=", name), "Take cpu, cuda or auto");
}

c10::Device choose_device(config::DeviceChoice choice, int64_t local_rank, int64_t local_size) {
  if (choice == config::DeviceChoice::Cpu || (choice == config::DeviceChoice::Auto && !has_gpu())) return at::kCPU;
  if (!has_gpu()) {
    throw ConfigError(
        "device", cat("there is no GPU that torch can use: device=", name_of(choice)),
        "Take --device cpu or auto; nvidia-smi shows whether the driver sees one, and a torch with CUDA must be installed");
  }
  const c10::Device device(at::kCUDA, gpu_of_rank(local_rank, local_size, at::detail::getCUDAHooks().deviceCount()));
  make_current(device);
  return device;
}

// Without it every call that names no GPU goes to the first one: the runtime's, page-locked memory, a capture's generator. Each
// rank would take half a gigabyte there for a context that it does not use.
void make_current(c10::Device device) {
  if (device.is_cpu()) return;
  try {
    c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
  } catch (const c10::Error& error) {
    throw ConfigError("device", cat("the GPU cannot be used: device=", device.str(), ", reason=", error.what_without_backtrace()),
                      "nvidia-smi shows who has it (an exclusive compute mode lets in one process), or take --device cpu");
  }
}

void wait_for_stream(c10::Device device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.synchronizeStream(guard.getStream(device));
}

}  // namespace welkin::train
