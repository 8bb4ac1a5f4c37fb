// SPDX-License-Identifier: Apache-2.0
// The time of day, for logs and event files alone: no decision depends on it, since clocks of hosts jump and differ. Durations
// are measured with core/stopwatch.h.
#pragma once

#include <chrono>

namespace welkin {

std::chrono::system_clock::time_point wall_now();

// Shifts the clock of this process by so much from now on. For fault injection.
void shift_wall_clock(std::chrono::milliseconds by);

}  // namespace welkin
