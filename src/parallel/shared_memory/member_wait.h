// SPDX-License-Identifier: Apache-2.0
// Waiting for another member of a group, as long as what is awaited can still come.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "parallel/shared_memory/segment.h"

namespace welkin::parallel {

struct WaitLimits {
  std::chrono::milliseconds deadline{600'000};  // of one call
  std::function<bool()> is_over = {};           // whether the ranks have parted; empty: never
};

class MemberWait {
 public:
  using Time = std::chrono::steady_clock::time_point;

  MemberWait(const Segment& segment, WaitLimits limits) : segment_(segment), limits_(std::move(limits)) {}

  // When a call that begins now has to be over.
  Time end_of_call() const { return std::chrono::steady_clock::now() + limits_.deadline; }
  // Returns when the word of a member has reached the count. std::runtime_error where the member or the group has ended before,
  // or at `end`. Every few milliseconds it does what is to be done `meanwhile`.
  void await(SharedWord& word, uint32_t count, int64_t member, Time end, const std::function<void()>& meanwhile = {}) const;

  // From any thread: calls under way end with an error.
  void stop() { is_stopped_ = true; }

 private:
  std::string reason_to_end(int64_t member, Time end) const;  // empty: it may still come

  const Segment& segment_;
  WaitLimits limits_;
  std::atomic<bool> is_stopped_ = false;
};

}  // namespace welkin::parallel
