// SPDX-License-Identifier: Apache-2.0
// NCCL by c10d, for ops/device/device_ops.h.
#define USE_C10D_NCCL
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>

#include <array>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "core/process/host.h"
#include "core/text.h"
#include "ops/device/device_ops.h"

namespace welkin::parallel {
namespace {

c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int place, int size,
                                            std::chrono::milliseconds deadline) {
  // Exchange kernels run before queued kernels of the model, since other ranks wait for the exchange.
  const auto options = c10d::ProcessGroupNCCL::Options::create(/*is_high_priority_stream=*/true);
  options->timeout = deadline;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, place, size, options);
}

// Distinguishes GPUs as NCCL does: it refuses two ranks at one address of a machine's bus. Parts of one GPU (MIG) differ only
// in their identifiers.
std::string gpu_name() {
  int index = 0;
  std::array<char, 32> address{};
  C10_CUDA_CHECK(cudaGetDevice(&index));
  C10_CUDA_CHECK(cudaDeviceGetPCIBusId(address.data(), address.size(), index));
  return cat(boot_id(), " ", address.data());
}

const bool kRegistered = [] {
  ops::device_ops().gpu_name = &gpu_name;
  ops::device_ops().make_backend = &make_nccl;
  return true;
}();

}  // namespace
}  // namespace welkin::parallel
