// SPDX-License-Identifier: Apache-2.0
// The back end that carries tensors of a GPU. NCCL's is in torch's CUDA library, which only libwelkin_cuda.so links. Heavy: only
// the adapter to c10d includes it.
#pragma once

#include <chrono>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace welkin::parallel {

// The member `place` of `size`; the store's keys are the group's own. Its connections are made by the first call, on the GPU of
// that call's tensors. Throws c10::Error where there is no GPU.
using MakeDeviceBackend = c10::intrusive_ptr<c10d::Backend> (*)(const c10::intrusive_ptr<c10d::Store>& store, int place, int size,
                                                                std::chrono::milliseconds deadline);

// libwelkin_cuda.so registers its function while it is loaded; null before, and where it was built without NCCL's header.
MakeDeviceBackend& device_backend();

}  // namespace welkin::parallel
