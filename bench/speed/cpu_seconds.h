// SPDX-License-Identifier: Apache-2.0
// The clock of the benchmarks of one operator, which other work on the machine does not move, and what they keep.
#pragma once

#include <ctime>

namespace welkin::bench {

// CPU time of this thread.
inline double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The best of several, in seconds.
struct PassTimes {
  double forward = 1e9, backward = 1e9;
};

}  // namespace welkin::bench
