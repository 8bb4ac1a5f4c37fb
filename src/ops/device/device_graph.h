// SPDX-License-Identifier: Apache-2.0
// Device work that is recorded once and launched again as a whole (CUDA graphs): a step of hundreds of small kernels then
// costs the host one call. The recorder is in libwelkin_cuda.so.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace welkin::ops {

// Used by one thread. Its recordings live as long as it does.
class GraphRecorder {
 public:
  virtual ~GraphRecorder() = default;

  // Runs `work` on the recorder's own stream: after all work queued on the current stream and before any queued
  // later. Call record() and replay() inside of it.
  virtual void run(const std::function<void()>& work) = 0;

  // Calls `work` once and records its launches, none of which run. `work` must not wait for the device, nor read from
  // it; other threads may. Memory of its tensors must stay in place. Tensors that it makes stay valid while they are held, and
  // can be read after a replay. Returns the number of the recording; an error of `work` passes through.
  virtual size_t record(const std::function<void()>& work) = 0;

  // Launches a recording; on the device it runs after all earlier work of the stream. Recordings share their memory: replay
  // them in the order in which they were recorded, each once or several times in a row.
  virtual void replay(size_t recording) = 0;

  // Waits until the device has finished all launched work.
  virtual void wait() = 0;
};
using GraphRecorderPtr = std::unique_ptr<GraphRecorder>;

using MakeGraphRecorder = GraphRecorderPtr (*)(c10::Device device);

}  // namespace welkin::ops
