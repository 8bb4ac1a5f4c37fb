// SPDX-License-Identifier: Apache-2.0
// For functions of CUDA tensors that are given a CPU's (cuda_runtime_api.h): the guard of a device counts their calls.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace welkin::tests {

inline int64_t& device_calls() {
  static int64_t count = 0;
  return count;
}

}  // namespace welkin::tests

namespace c10::cuda {

struct CUDAGuard {
  explicit CUDAGuard(c10::Device /*device*/) { ++welkin::tests::device_calls(); }
};

}  // namespace c10::cuda
