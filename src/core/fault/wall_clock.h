// SPDX-License-Identifier: Apache-2.0
// The time of day, for logs and event files alone: nothing is decided by it, since clocks of hosts jump and differ. What takes
// time is measured with core/stopwatch.h.
#pragma once

#include <chrono>

namespace welkin {

std::chrono::system_clock::time_point wall_now();

// From now on the clock of this process is off by so much more. For fault injection.
void shift_wall_clock(std::chrono::milliseconds by);

}  // namespace welkin
