// SPDX-License-Identifier: Apache-2.0
// Ranges for NVIDIA's tools, and the window in which they record, through torch's own NVTX calls and the CUDA runtime, which
// the wheel brings. On a machine without a GPU both do nothing.
#pragma once

#include "observe/timeline/span.h"

namespace welkin::train {

bool has_nvtx();  // libtorch_cuda is loaded

// Waits until the current GPU has done all its work.
void wait_for_gpu();

// Spans as NVTX ranges, under the same names.
class NvtxSink : public observe::SpanSink {
 public:
  void begin(std::string_view name) noexcept override;
  void end(std::string_view name, observe::SpanClock::time_point began) noexcept override;
};

// cudaProfilerStart and cudaProfilerStop: nsys -c cudaProfilerApi records between the two. Both wait for the device, so that
// the window holds whole steps.
void start_cuda_profiler();
void stop_cuda_profiler();

}  // namespace welkin::train
