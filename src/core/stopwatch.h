// SPDX-License-Identifier: Apache-2.0
// Elapsed wall time from the monotonic clock.
#pragma once

#include <chrono>

namespace welkin {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  void restart() { start_ = Clock::now(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace welkin
