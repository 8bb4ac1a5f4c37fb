// SPDX-License-Identifier: Apache-2.0
// NCCL by c10d, for ops/device/device_ops.h.
#define USE_C10D_NCCL
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstring>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "core/hash.h"
#include "ops/device/device_ops.h"

namespace welkin::parallel {
namespace {

c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int place, int size,
                                            std::chrono::milliseconds deadline) {
  // Kernels of the exchange go before those of the model that are queued already: their end is what the others wait for.
  const auto options = c10d::ProcessGroupNCCL::Options::create(/*is_high_priority_stream=*/true);
  options->timeout = deadline;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, place, size, options);
}

// Ranks on parts of one GPU (MIG) have names of their own: their identifiers differ.
std::string gpu_name() {
  int index = 0;
  cudaDeviceProp properties{};
  C10_CUDA_CHECK(cudaGetDevice(&index));
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
  std::array<uint64_t, 2> words{};
  static_assert(sizeof(words) == sizeof(properties.uuid.bytes));
  std::memcpy(words.data(), properties.uuid.bytes, sizeof(words));
  return hex_digits(words[0]) + hex_digits(words[1]);
}

const bool kRegistered = [] {
  ops::device_ops().gpu_name = &gpu_name;
  ops::device_ops().make_backend = &make_nccl;
  return true;
}();

}  // namespace
}  // namespace welkin::parallel
