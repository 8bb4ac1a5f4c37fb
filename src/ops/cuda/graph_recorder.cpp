// SPDX-License-Identifier: Apache-2.0
// Recordings as CUDA graphs, for ops/device/device_graph.h. Capture is per thread: reading threads may copy and allocate
// meanwhile, and the watchdog of c10d's NCCL may query the events of earlier calls. Kernels of the backward pass are captured,
// too, although autograd's threads launch them: a capture follows its stream, and from there NCCL's streams, which wait
// for it and for which it waits. c10d hides captured calls from its watchdog.
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/Event.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <exception>
#include <vector>

#include "ops/device/device_ops.h"

namespace welkin::ops {
namespace {

void order(const c10::Stream& before, const c10::Stream& after) {
  c10::Event reached(c10::kCUDA);
  reached.record(before);
  reached.block(after);
}

class CudaGraphRecorder final : public GraphRecorder {
 public:
  explicit CudaGraphRecorder(c10::Device device)
      : stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index())), pool_(at::cuda::graph_pool_handle()) {}

  void run(const std::function<void()>& work) override {
    const c10::cuda::CUDAStream caller = c10::cuda::getCurrentCUDAStream(stream_.device_index());
    order(caller, stream_);
    {
      const c10::cuda::CUDAStreamGuard guard(stream_);
      work();
    }
    order(stream_, caller);
  }

  size_t record(const std::function<void()>& work) override {
    const c10::cuda::CUDAStreamGuard guard(stream_);
    // Cached eager memory is useless for the recordings, which have their own pool.
    c10::cuda::device_synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();
    // Stored before the capture: if that fails, torch's allocator still uses the graph.
    at::cuda::CUDAGraph& graph = *graphs_.emplace_back(std::make_unique<at::cuda::CUDAGraph>());
    graph.capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (...) {
      abandon(graph);
      throw;
    }
    graph.capture_end();
    return graphs_.size() - 1;
  }

  void replay(size_t recording) override {
    const c10::cuda::CUDAStreamGuard guard(stream_);
    graphs_.at(recording)->replay();
  }

  void wait() override { stream_.synchronize(); }

 private:
  // Ends the capture of the stream. An error about the invalid graph is expected.
  static void abandon(at::cuda::CUDAGraph& graph) noexcept {
    try {
      graph.capture_end();
    } catch (const std::exception&) {
    }
  }

  c10::cuda::CUDAStream stream_;
  c10::MempoolId_t pool_;  // shared by all recordings: they never run at the same time
  std::vector<std::unique_ptr<at::cuda::CUDAGraph>> graphs_;
};

GraphRecorderPtr make_cuda_recorder(c10::Device device) { return std::make_unique<CudaGraphRecorder>(device); }

const bool kRecorderRegistered = [] {
  device_ops().make_graph_recorder = &make_cuda_recorder;
  return true;
}();

}  // namespace
}  // namespace welkin::ops
