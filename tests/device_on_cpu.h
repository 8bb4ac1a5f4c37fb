// SPDX-License-Identifier: Apache-2.0
// Operators' functions for tensors of a GPU, given a CPU's: with their own kernels, run by tests/cuda_on_cpu.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/cuda/CUDAGuard.h>

#include <cstdint>

#include "ops/device/device_ops.h"

namespace welkin::tests {

// While alive, tensors of the CPU take the way of a GPU through the operator of this table.
template <auto Table>
class OnCpu {
 public:
  OnCpu() {
    (ops::device_ops().*Table).device = c10::kCPU;
    device_calls() = 0;
  }
  ~OnCpu() { (ops::device_ops().*Table).device = c10::kCUDA; }
  OnCpu(const OnCpu&) = delete;
  OnCpu& operator=(const OnCpu&) = delete;

  // Of the functions of every such table, since the newest of these objects was made.
  static int64_t calls() { return device_calls(); }
};

using BiasGeluOnCpu = OnCpu<&ops::DeviceOps::gelu>;
using BiasLeakyReluOnCpu = OnCpu<&ops::DeviceOps::leaky_relu>;
using BoxBlocksOnCpu = OnCpu<&ops::DeviceOps::blocks>;
using DeviceUpdateOnCpu = OnCpu<&ops::DeviceOps::update>;
using ErrorSumsOnCpu = OnCpu<&ops::DeviceOps::errors>;
using ResidualNormOnCpu = OnCpu<&ops::DeviceOps::norm>;

// What torch's dispatcher would call for CUDA tensors; `name` with its namespace.
template <typename Signature, typename... Arguments>
auto call_device_kernel(const char* name, const Arguments&... arguments) {
  const auto kernel = c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
  return kernel.redispatch(c10::DispatchKeySet(c10::DispatchKey::CUDA), arguments...);
}

}  // namespace welkin::tests
