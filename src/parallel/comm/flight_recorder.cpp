// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/flight_recorder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/process/host.h"
#include "core/text.h"

namespace welkin::parallel {

const char* name_of(CallState state) {
  switch (state) {
    case CallState::Started:
      return "started";
    case CallState::Queued:
      return "queued";
    case CallState::Done:
      return "done";
    default:
      return "failed";
  }
}

std::string CallEntry::text() const { return cat(name, " #", sequence, " of group ", group, ", ", shape); }

int64_t FlightRecorder::start(CallEntry entry) {
  entry.started = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  const int64_t ticket = next_++;
  ring_[static_cast<size_t>(ticket) % ring_.size()] = std::move(entry);
  return ticket;
}

void FlightRecorder::finish(int64_t ticket, CallState state) {
  const size_t slot = static_cast<size_t>(ticket) % ring_.size();
  bool is_marked = false;
  if (marks_ && state == CallState::Done) {
    std::unique_lock lock(mutex_);
    is_marked = is_in_ring(ticket) && ring_[slot].is_on_gpu;
    lock.unlock();  // the device's queue may be full, and the watch is to be able to look meanwhile
    is_marked = is_marked && marks_->place(slot);
  }
  const std::lock_guard lock(mutex_);
  if (!is_in_ring(ticket)) return;  // overwritten since
  CallEntry& entry = ring_[slot];
  entry.state = is_marked ? CallState::Queued : state;
  entry.ended = std::chrono::steady_clock::now();
  if (state == CallState::Done) add_total(entry);
}

void FlightRecorder::look_at_device() const {
  for (size_t slot = 0; slot < ring_.size(); ++slot) {
    if (ring_[slot].state == CallState::Queued && marks_->is_passed(slot)) ring_[slot].state = CallState::Done;
  }
}

CallEntry FlightRecorder::entry(int64_t ticket) const {
  const std::lock_guard lock(mutex_);
  return ring_[static_cast<size_t>(ticket) % ring_.size()];
}

int64_t FlightRecorder::num_calls() const {
  const std::lock_guard lock(mutex_);
  return next_;
}

void FlightRecorder::add_total(const CallEntry& entry) {
  auto same = std::find_if(totals_.begin(), totals_.end(),
                           [&](const CallTotal& total) { return total.name == entry.name && total.group == entry.group; });
  if (same == totals_.end()) same = totals_.insert(totals_.end(), {.group = entry.group, .name = entry.name});
  ++same->calls;
  same->bytes += entry.bytes;
  same->seconds += std::chrono::duration<double>(entry.ended - entry.started).count();
}

std::vector<CallTotal> FlightRecorder::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

std::string FlightRecorder::totals_text() const {
  std::string lines;
  for (const CallTotal& total : totals()) {
    const double rate = total.seconds > 0 ? static_cast<double>(total.bytes) / total.seconds * 1e-9 : 0;
    lines += cat(total.name, " of group ", total.group, ": ", total.calls, " calls, ",
                 format_bytes(static_cast<uint64_t>(total.bytes)), ", ", std::round(rate * 1e3) / 1e3, " GB/s while under way\n");
  }
  return lines;
}

std::optional<CallEntry> FlightRecorder::oldest_open() const {
  const std::lock_guard lock(mutex_);
  look_at_device();
  for (int64_t i = std::max<int64_t>(0, next_ - static_cast<int64_t>(ring_.size())); i < next_; ++i) {
    const CallEntry& entry = ring_[static_cast<size_t>(i) % ring_.size()];
    if (entry.state == CallState::Started || entry.state == CallState::Queued) return entry;
  }
  return {};
}

std::optional<CallEntry> FlightRecorder::last() const {
  const std::lock_guard lock(mutex_);
  if (next_ == 0) return {};
  return ring_[static_cast<size_t>(next_ - 1) % ring_.size()];
}

std::vector<CallEntry> FlightRecorder::entries() const {
  const std::lock_guard lock(mutex_);
  look_at_device();
  std::vector<CallEntry> all;
  for (int64_t i = std::max<int64_t>(0, next_ - static_cast<int64_t>(ring_.size())); i < next_; ++i) {
    all.push_back(ring_[static_cast<size_t>(i) % ring_.size()]);
  }
  return all;
}

std::string FlightRecorder::text() const {
  const auto now = std::chrono::steady_clock::now();
  std::string lines;
  for (const CallEntry& entry : entries()) {
    const std::chrono::duration<double> age = now - entry.started;
    lines += cat(name_of(entry.state), ", ", age.count(), " s ago: ", entry.text(), "\n");
  }
  return lines;
}

}  // namespace welkin::parallel
