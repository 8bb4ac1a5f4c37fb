// SPDX-License-Identifier: Apache-2.0
#include "core/fault/wall_clock.h"

#include <atomic>
#include <cstdint>

namespace welkin {
namespace {

std::atomic<int64_t> shift_ms = 0;

}  // namespace

std::chrono::system_clock::time_point wall_now() {
  return std::chrono::system_clock::now() + std::chrono::milliseconds(shift_ms.load(std::memory_order_relaxed));
}

void shift_wall_clock(std::chrono::milliseconds by) { shift_ms += by.count(); }

}  // namespace welkin
