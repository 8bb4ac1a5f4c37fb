// SPDX-License-Identifier: Apache-2.0
// The last collectives of this process: what a message about a hang is made from. It knows no tensors and no network.
// A call on a GPU has ended for the host when it is queued. It is done when the GPU has passed a mark behind it.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/device/device_marks.h"

namespace welkin::parallel {

enum class CallState : uint8_t { Started, Queued, Done, Failed };
const char* name_of(CallState state);

// One call of a collective. `sequence` counts the calls of its group, from 1, so that members can be compared.
struct CallEntry {
  int64_t sequence = 0;
  std::string name;   // "all_reduce"
  std::string shape;  // "float (2, 48, 32)"
  std::string group;  // "tp [0, 1]"
  int64_t bytes = 0;  // of this rank's tensor; of a gather, of the whole
  bool is_on_gpu = false;
  CallState state = CallState::Started;
  std::chrono::steady_clock::time_point started;
  std::chrono::steady_clock::time_point ended = {};  // of a call that is queued, is done or has failed

  // "all_reduce #12 of group tp [0, 1], float (2, 48, 32)"
  std::string text() const;
};

// Of all calls of one collective in one group that are done. `seconds`: from the call to its end, so that of one that runs beside
// the computation they are no loss. Of calls on a GPU: until they are queued.
struct CallTotal {
  std::string group, name;
  int64_t calls = 0, bytes = 0;
  double seconds = 0;
};

class FlightRecorder {
 public:
  static constexpr size_t kCapacity = 256;

  // `marks`: with as many slots, for calls on a GPU. Null: such a call is done when the host is done with it.
  explicit FlightRecorder(ops::StreamMarksPtr marks = nullptr) : marks_(std::move(marks)), ring_(kCapacity) {}

  // Returns the ticket for finish(). Thread-safe.
  int64_t start(CallEntry entry);
  // Done: for the host. A call on a GPU becomes Queued, on the current stream.
  void finish(int64_t ticket, CallState state);
  CallEntry entry(int64_t ticket) const;  // of a call under way: fewer than the capacity ago

  int64_t num_calls() const;
  std::vector<CallTotal> totals() const;  // in the order of their first calls
  // "all_reduce of group tp [0, 1]: 48 calls, 12.0 MiB, 1.25 GB/s while under way", a line each.
  std::string totals_text() const;
  std::optional<CallEntry> oldest_open() const;  // of the calls under way, on a GPU too
  std::optional<CallEntry> last() const;
  std::vector<CallEntry> entries() const;  // oldest first, at most the capacity
  // One line per entry, oldest first: state, age, call.
  std::string text() const;

 private:
  void add_total(const CallEntry& entry);
  bool is_in_ring(int64_t ticket) const { return next_ - ticket <= static_cast<int64_t>(ring_.size()); }
  void look_at_device() const;

  mutable std::mutex mutex_;
  ops::StreamMarksPtr marks_;
  mutable std::vector<CallEntry> ring_;  // a look may find that a queued call is done
  std::vector<CallTotal> totals_;
  int64_t next_ = 0;
};

}  // namespace welkin::parallel
