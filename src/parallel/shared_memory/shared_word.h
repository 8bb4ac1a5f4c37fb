// SPDX-License-Identifier: Apache-2.0
// A count in memory that processes share. One process raises it, and others wait until it has come far enough. It wraps around:
// those who compare counts are less than 2^31 apart.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace welkin::parallel {

class SharedWord {
 public:
  static_assert(std::atomic<uint32_t>::is_always_lock_free, "the word is shared between processes");

  bool has_reached(uint32_t count) const { return is_at(value_.load(std::memory_order_acquire), count); }
  // What was written before is seen by those who find the count reached.
  void raise(uint32_t count);
  // Wakes who waits although the count has not changed: there is something else to look at.
  void wake();
  // Looks for some microseconds, then sleeps at most this long. Whether the count is reached.
  bool wait(uint32_t count, std::chrono::milliseconds at_most);

 private:
  static bool is_at(uint32_t value, uint32_t count) { return static_cast<int32_t>(value - count) >= 0; }

  std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> sleepers_{0};  // one that was killed still counts: then raise() makes a call of the system too many
};

}  // namespace welkin::parallel
