// SPDX-License-Identifier: Apache-2.0
// Progress of a device through the work of its host: marks between the calls of a stream, which the device passes. The host can
// query them without waiting. They are CUDA events, in libwelkin_cuda.so.
#pragma once

#include <cstddef>
#include <memory>

namespace welkin::ops {

class StreamMarks {
 public:
  virtual ~StreamMarks() = default;

  // Places a mark behind all work of the current device's current stream, in place of the slot's earlier one. False during a
  // capture of the stream: its work will run in a replay, and nothing is marked.
  virtual bool place(size_t slot) = 0;

  // True if the device has passed the slot's mark, which must have been placed. From any thread, even during a capture.
  virtual bool is_passed(size_t slot) const = 0;
};
using StreamMarksPtr = std::unique_ptr<StreamMarks>;

using MakeStreamMarks = StreamMarksPtr (*)(size_t slots);

}  // namespace welkin::ops
