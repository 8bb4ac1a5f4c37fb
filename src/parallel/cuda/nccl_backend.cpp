// SPDX-License-Identifier: Apache-2.0
// NCCL by c10d, for parallel/c10d/device_backend.h.
#define USE_C10D_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "parallel/c10d/device_backend.h"

namespace welkin::parallel {
namespace {

c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int place, int size,
                                            std::chrono::milliseconds deadline) {
  // Kernels of the exchange go before those of the model that are queued already: their end is what the others wait for.
  const auto options = c10d::ProcessGroupNCCL::Options::create(/*is_high_priority_stream=*/true);
  options->timeout = deadline;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, place, size, options);
}

const bool kRegistered = [] {
  device_backend() = &make_nccl;
  return true;
}();

}  // namespace
}  // namespace welkin::parallel
