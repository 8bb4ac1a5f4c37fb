// SPDX-License-Identifier: Apache-2.0
// How far a device is with what its host has sent it: marks between the calls of a stream, which the device passes. The host asks
// without waiting. They are events of CUDA, in libwelkin_cuda.so.
#pragma once

#include <cstddef>
#include <memory>

namespace welkin::ops {

class StreamMarks {
 public:
  virtual ~StreamMarks() = default;

  // Behind all that the current stream of the current device has got. A slot's mark before is forgotten. False while the stream
  // is captured: what it gets then runs with a replay, and nothing is marked.
  virtual bool place(size_t slot) = 0;

  // Whether the device is past the slot's mark, which has been placed. On any thread, also beside a capture.
  virtual bool is_passed(size_t slot) const = 0;
};
using StreamMarksPtr = std::unique_ptr<StreamMarks>;

using MakeStreamMarks = StreamMarksPtr (*)(size_t slots);

}  // namespace welkin::ops
