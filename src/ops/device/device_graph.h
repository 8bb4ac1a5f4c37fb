// SPDX-License-Identifier: Apache-2.0
// Work of a device that is recorded once and started again as a whole (CUDA graphs): a step of hundreds of small kernels then
// costs the host one call. The recorder is in libwelkin_cuda.so.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace welkin::ops {

// Used by one thread. What it makes lives as long as it does.
class GraphRecorder {
 public:
  virtual ~GraphRecorder() = default;

  // Runs `work` on the recorder's own stream: after everything already queued on the current stream and before anything queued
  // later. record() and replay() are called inside.
  virtual void run(const std::function<void()>& work) = 0;

  // Calls `work` once and keeps what it sends to the device, of which nothing runs. It may not wait for the device, nor read from
  // it; other threads may. What its tensors point to must stay where it is, and tensors that it makes stay valid, to be read
  // after a replay, as long as one holds them. Returns the number of the recording; an error of `work` passes through.
  virtual size_t record(const std::function<void()>& work) = 0;

  // Starts a recording; on the device it runs after what the stream has got so far. Recordings share their memory: they are
  // started in the order in which they were recorded, each once or several times in a row.
  virtual void replay(size_t recording) = 0;

  // Waits until the device has done all that was started.
  virtual void wait() = 0;
};
using GraphRecorderPtr = std::unique_ptr<GraphRecorder>;

using MakeGraphRecorder = GraphRecorderPtr (*)(c10::Device device);

}  // namespace welkin::ops
