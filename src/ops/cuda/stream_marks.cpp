// SPDX-License-Identifier: Apache-2.0
// Marks as CUDA events, for ops/device/device_marks.h.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <vector>

#include "ops/device/device_ops.h"

namespace welkin::ops {
namespace {

class CudaStreamMarks final : public StreamMarks {
 public:
  explicit CudaStreamMarks(size_t slots) : events_(slots, nullptr) {}
  ~CudaStreamMarks() override {
    for (cudaEvent_t event : events_) {
      if (event != nullptr) C10_CUDA_IGNORE_ERROR(cudaEventDestroy(event));
    }
  }
  CudaStreamMarks(const CudaStreamMarks&) = delete;
  CudaStreamMarks& operator=(const CudaStreamMarks&) = delete;

  bool place(size_t slot) override {
    if (c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None) return false;
    cudaEvent_t& event = events_.at(slot);
    if (event == nullptr) C10_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    C10_CUDA_CHECK(cudaEventRecord(event, c10::cuda::getCurrentCUDAStream()));
    return true;
  }

  // A query would invalidate another thread's capture, unless this thread's capture mode is thread-local.
  // After a device error no mark counts as passed.
  bool is_passed(size_t slot) const override {
    const c10::cuda::CUDAStreamCaptureModeGuard beside_captures(cudaStreamCaptureModeThreadLocal);
    const cudaError_t said = C10_CUDA_ERROR_HANDLED(cudaEventQuery(events_.at(slot)));
    if (said != cudaSuccess) C10_CUDA_IGNORE_ERROR(cudaGetLastError());
    return said == cudaSuccess;
  }

 private:
  std::vector<cudaEvent_t> events_;  // each created with its slot's first mark
};

StreamMarksPtr make_marks(size_t slots) { return std::make_unique<CudaStreamMarks>(slots); }

const bool kMarksRegistered = [] {
  device_ops().make_stream_marks = &make_marks;
  return true;
}();

}  // namespace
}  // namespace welkin::ops
